// Reductions: how an iterator over (output, input) becomes a launch, and the loops that run it.
//
// An operator supplies loops over packed values (a Reduction, made from a small class); which
// dimensions are reduced, strides, conversions and threads are common to all.
//
// A vendor replaces: reduce(), by a launch of their reduction kernel.
#pragma once

#include <ATen/TensorIterator.h>

#include "aten/native/Types.h"

namespace torch_accel {

struct Reduction {
  c10::ScalarType in_type, out_type;
  size_t state_size;
  void (*init)(void* states, int64_t count);
  // One state over all values; each state over one value.
  void (*inner)(void* state, const char* in, int64_t count);
  void (*outer)(void* states, const char* in, int64_t count);
  void (*combine)(void* state, const void* other);
  // `reduced` is the number of values behind each state.
  void (*finish)(char* out, const void* states, int64_t count, int64_t reduced);
};

inline constexpr size_t kMaxStateSize = 16;

// From a class with types In, State, Out and static functions identity(), step(State, In) -> State,
// inner(const In*, count) -> State, combine(State, State) and finish(State, int64_t) -> Out.
template <class Op>
Reduction makeReduction() {
  using In = typename Op::In;
  using State = typename Op::State;
  using Out = typename Op::Out;
  static_assert(sizeof(State) <= kMaxStateSize);
  Reduction r;
  r.in_type = dtypeOf<In>;
  r.out_type = dtypeOf<Out>;
  r.state_size = sizeof(State);
  r.init = [](void* states, int64_t count) {
    for (int64_t i = 0; i < count; ++i) static_cast<State*>(states)[i] = Op::identity();
  };
  r.inner = [](void* state, const char* in, int64_t count) {
    auto* s = static_cast<State*>(state);
    *s = Op::combine(*s, Op::inner(reinterpret_cast<const In*>(in), count));
  };
  r.outer = &Op::outer;
  r.combine = [](void* state, const void* other) {
    auto* s = static_cast<State*>(state);
    *s = Op::combine(*s, *static_cast<const State*>(other));
  };
  r.finish = [](char* out, const void* states, int64_t count, int64_t reduced) {
    for (int64_t i = 0; i < count; ++i) {
      reinterpret_cast<Out*>(out)[i] = Op::finish(static_cast<const State*>(states)[i], reduced);
    }
  };
  return r;
}

// Queues `reduction` for an iterator made by TensorIterator::reduce_op.
void reduce(at::TensorIteratorBase& iter, const char* name, const Reduction& reduction);

}  // namespace torch_accel
