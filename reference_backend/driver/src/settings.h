// What the environment sets: TORCH_ACCEL_DEVICES and TORCH_ACCEL_MEMORY, read at the first use.
#pragma once

#include <cstddef>
#include <string>

namespace torch_accel::driver {

struct Settings {
  int devices = 2;
  size_t memory = size_t{4} << 30;  // bytes of each device, a multiple of ACCEL_PAGE_SIZE
  std::string problem;              // not empty: the environment is wrong, `devices` is 0
};

const Settings& settings();

}  // namespace torch_accel::driver
