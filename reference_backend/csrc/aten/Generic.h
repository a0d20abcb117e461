// The generic mechanism: every operator that has no kernel of its own here, through one boxed
// kernel.
//
// On the calling thread the metadata of the outputs is worked out (a cache, then PyTorch's own
// shape functions), outputs are allocated on the device and one kernel is queued. On the stream's
// worker PyTorch's CPU kernel runs on CPU aliases of the arguments' device memory. Operators whose
// output shape depends on data, or that PyTorch has no shape function for, wait for the result: the
// fallback. csrc/aten/generic_ops.txt lists the operators of both kinds.
//
// A vendor replaces: this whole mechanism, op by op, with kernels of their own.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace torch_accel {

// Registers the generic kernel for every listed operator that has no PrivateUse1 kernel yet. Called
// once, after all static registrations of this library.
void registerGenericOps();

// Operators that synchronise by declaration, as "aten::unique_dim" or "aten::nonzero.out"; sorted.
std::vector<std::string> fallbackOps();

// Operators served by the generic mechanism without waiting; sorted.
std::vector<std::string> genericOps();

// How often each operator waited for its result since the process began: the declared fallback, and
// calls of other operators whose metadata could not be worked out beforehand.
std::unordered_map<std::string, uint64_t> fallbackCalls();

// The metadata cache, for tests. `size` is the number of entries.
struct MetadataCacheCounters {
  uint64_t hits, misses, size;
};
MetadataCacheCounters metadataCacheCounters();

}  // namespace torch_accel
