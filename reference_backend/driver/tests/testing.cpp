// Runs the tests: `driver_tests [PATTERN ...]` those whose names contain a pattern, or all.
#include "testing.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

namespace driver_tests {
namespace {

constexpr unsigned kTimeoutSeconds = 40;

struct Test {
  const char* name;
  void (*body)();
};

std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

std::string describeStatus(int status) {
  if (WIFEXITED(status)) return "exit status " + std::to_string(WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGALRM) {
    return "still running at the time limit";
  }
  return std::string("signal ") + strsignal(WTERMSIG(status));
}

int waitForChild(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) failCheck(__FILE__, __LINE__, "waitpid failed");
  }
  return status;
}

// In the test's own process. Ends with the driver drained, so that sanitizers see every thread end.
int runHere(const char* name) {
  for (const Test& test : tests()) {
    if (std::strcmp(test.name, name) != 0) continue;
    alarm(kTimeoutSeconds);
    test.body();
    CHECK_OK(accelShutdown());
    return 0;
  }
  std::fprintf(stderr, "there is no test %s\n", name);
  return 2;
}

// A new program, not only a fork: the test must not depend on what the runner did.
int statusOfTest(const char* program, const char* name) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    execl(program, program, "--run", name, static_cast<char*>(nullptr));
    _exit(127);
  }
  return waitForChild(child);
}

bool selected(const char* name, char** patterns, int count) {
  return count == 0 || std::any_of(patterns, patterns + count, [&](const char* pattern) {
           return std::strstr(name, pattern) != nullptr;
         });
}

}  // namespace

Registration::Registration(const char* name, void (*body)()) {
  tests().push_back({name, body});
}

void failCheck(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
  std::fflush(nullptr);
  _exit(1);
}

std::string describe(accelError_t error) {
  return accelGetErrorName(error);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int statusOfChild(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) failCheck(__FILE__, __LINE__, "fork failed");
  if (child == 0) {
    alarm(kTimeoutSeconds / 2);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    body();
    std::fflush(nullptr);
    _exit(0);
  }
  return waitForChild(child);
}

void inChild(const std::function<void()>& body) {
  const int status = statusOfChild(body);
  if (status != 0) failCheck(__FILE__, __LINE__, "a child failed: " + describeStatus(status));
}

int threadCount() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) return std::atoi(line.c_str() + std::strlen("Threads:"));
  }
  failCheck(__FILE__, __LINE__, "/proc/self/status does not tell the number of threads");
}

void waitForThreadCount(int expected) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (threadCount() != expected) {
    if (std::chrono::steady_clock::now() > deadline) CHECK_EQ(threadCount(), expected);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace driver_tests

int main(int argc, char** argv) {
  using namespace driver_tests;
  if (argc == 3 && std::strcmp(argv[1], "--run") == 0) return runHere(argv[2]);
  const auto begin = std::chrono::steady_clock::now();
  int ran = 0;
  std::vector<const char*> failed;
  for (const Test& test : tests()) {
    if (!selected(test.name, argv + 1, argc - 1)) continue;
    ++ran;
    const int status = statusOfTest("/proc/self/exe", test.name);
    if (status == 0) continue;
    std::fprintf(stderr, "FAILED %s: %s\n", test.name, describeStatus(status).c_str());
    failed.push_back(test.name);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%d driver tests, %zu failed, %.1f s\n", ran, failed.size(), took.count());
  if (ran == 0) std::fprintf(stderr, "no test has such a name\n");
  return ran == 0 || !failed.empty() ? 1 : 0;
}
