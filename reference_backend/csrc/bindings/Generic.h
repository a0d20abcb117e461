// The bindings of csrc/aten/Generic.h.
#pragma once

#include <pybind11/pybind11.h>

namespace torch_accel {

void bindGeneric(pybind11::module_& module);

}  // namespace torch_accel
