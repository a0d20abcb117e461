// Reads the two environment variables. A vendor's driver asks the hardware instead.
#include "settings.h"

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "accel_driver.h"

namespace torch_accel::driver {
namespace {

constexpr int kMaxDevices = 64;
// Keeps two times kMaxDevices ranges inside a 47-bit address space.
constexpr size_t kMaxMemory = size_t{512} << 30;

// Decimal digits only; `rest` is set to what follows them.
std::optional<unsigned long long> parseNumber(const char* text, const char** rest) {
  if (*text < '0' || *text > '9') return std::nullopt;
  errno = 0;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (errno != 0) return std::nullopt;
  *rest = end;
  return value;
}

std::optional<int> parseDevices(const char* text) {
  const char* rest = nullptr;
  const auto value = parseNumber(text, &rest);
  if (!value || *rest != '\0' || *value > kMaxDevices) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<size_t> parseMemory(const char* text) {
  const char* rest = nullptr;
  const auto value = parseNumber(text, &rest);
  if (!value) return std::nullopt;
  int shift = 0;
  if (*rest == 'K' || *rest == 'k') shift = 10;
  if (*rest == 'M' || *rest == 'm') shift = 20;
  if (*rest == 'G' || *rest == 'g') shift = 30;
  if (shift != 0) ++rest;
  if (*rest != '\0' || *value > (kMaxMemory >> shift)) return std::nullopt;
  const size_t bytes = (static_cast<size_t>(*value) << shift) & ~(ACCEL_PAGE_SIZE - 1);
  if (bytes == 0) return std::nullopt;
  return bytes;
}

Settings readEnvironment() {
  Settings result;
  if (const char* text = std::getenv("TORCH_ACCEL_DEVICES")) {
    if (const auto devices = parseDevices(text)) {
      result.devices = *devices;
    } else {
      result.problem =
          "TORCH_ACCEL_DEVICES must be a number from 0 to 64, not '" + std::string(text) + "'";
    }
  }
  if (const char* text = std::getenv("TORCH_ACCEL_MEMORY")) {
    if (const auto memory = parseMemory(text)) {
      result.memory = *memory;
    } else {
      result.problem =
          "TORCH_ACCEL_MEMORY must be a number of bytes from 4096 to 512G, with an optional suffix "
          "K, M or G, not '" +
          std::string(text) + "'";
    }
  }
  if (!result.problem.empty()) result.devices = 0;
  return result;
}

}  // namespace

const Settings& settings() {
  static const Settings* const instance = new Settings(readEnvironment());  // outlives statics
  return *instance;
}

}  // namespace torch_accel::driver
