// A small test framework for the driver: every test runs in a process of its own.
//
// So each starts with a driver that nobody has used, may set the environment first, and may crash
// or hang without harm to the others. A failed check ends the process, from whatever thread.
#pragma once

#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>

#include "accel_driver.h"

namespace driver_tests {

struct Registration {
  Registration(const char* name, void (*body)());
};

[[noreturn]] void failCheck(const char* file, int line, const std::string& what);

std::string describe(accelError_t error);

template <class T>
std::string describe(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

// What the checks say of two values.
template <class A, class B>
std::string compared(const char* expression, const A& actual, const char* expected_expression,
                     const B& expected) {
  return std::string(expression) + " is " + describe(actual) + ", expected " + expected_expression +
         " = " + describe(expected);
}

bool contains(const std::string& text, const std::string& part);

// Calls `body` in a forked child; the child's wait status.
int statusOfChild(const std::function<void()>& body);
// Calls `body` in a forked child, whose checks count.
void inChild(const std::function<void()>& body);

// Threads of this process now, and waiting for a number of them (10 s at most).
int threadCount();
void waitForThreadCount(int expected);

}  // namespace driver_tests

#define TEST(name)                                                                    \
  static void test_##name();                                                          \
  static const ::driver_tests::Registration registration_##name(#name, &test_##name); \
  static void test_##name()

#define CHECK(condition)                                                         \
  do {                                                                           \
    if (!(condition)) ::driver_tests::failCheck(__FILE__, __LINE__, #condition); \
  } while (0)

#define CHECK_EQ(actual, expected)                                                     \
  do {                                                                                 \
    const auto check_actual = (actual);                                                \
    const auto check_expected = (expected);                                            \
    if (!(check_actual == check_expected)) {                                           \
      ::driver_tests::failCheck(                                                       \
          __FILE__, __LINE__,                                                          \
          ::driver_tests::compared(#actual, check_actual, #expected, check_expected)); \
    }                                                                                  \
  } while (0)

// The result of a driver call.
#define CHECK_OK(call) CHECK_EQ(call, ACCEL_SUCCESS)

// A call that fails with `error`, and says something that contains `part`.
#define CHECK_FAILS(call, error, part)                                                           \
  do {                                                                                           \
    CHECK_EQ(call, error);                                                                       \
    if (!::driver_tests::contains(accelGetLastErrorMessage(), part)) {                           \
      ::driver_tests::failCheck(__FILE__, __LINE__,                                              \
                                std::string("the message of " #call " is '") +                   \
                                    accelGetLastErrorMessage() + "', without '" + (part) + "'"); \
    }                                                                                            \
  } while (0)
