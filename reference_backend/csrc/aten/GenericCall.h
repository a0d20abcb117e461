// The calling thread's half of the generic mechanism (see GenericOp.h for its parts).
#pragma once

#include "aten/GenericOp.h"

namespace torch_accel::generic {

// The boxed kernel of one operator.
class GenericFunctor final : public c10::OperatorKernel {
 public:
  explicit GenericFunctor(const OpRecord* record) : record_(record) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) const;

 private:
  const OpRecord* record_;
};

// Makes the tensor that a plan promises: allocates, or takes an argument or a view of it.
at::Tensor makeOutput(const ParsedCall& call, const OutputPlan& plan);

// Runs the CPU kernel on the worker, waits, and returns the outputs as device tensors. Raises what
// the kernel raises.
Stack fallback(const ParsedCall& call, const Stack& stack);

}  // namespace torch_accel::generic
