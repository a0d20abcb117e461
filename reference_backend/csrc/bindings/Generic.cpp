// What the generic mechanism reports about itself, for Python.
#include "aten/Generic.h"

#include <pybind11/stl.h>

#include "bindings/Generic.h"

namespace torch_accel {

void bindGeneric(pybind11::module_& module) {
  module.def("fallback_calls", &fallbackCalls, "How often each operator has waited.");
  module.def("fallback_ops", &fallbackOps, "Operators that wait for a CPU kernel's result.");
  module.def("generic_ops", &genericOps, "Operators that run a CPU kernel in the stream.");
  module.def("metadata_cache_counters", [] {
    const MetadataCacheCounters counters = metadataCacheCounters();
    pybind11::dict result;
    result["hits"] = counters.hits;
    result["misses"] = counters.misses;
    result["size"] = counters.size;
    return result;
  });
}

}  // namespace torch_accel
