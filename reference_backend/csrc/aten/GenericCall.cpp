// One call of a generic operator on the calling thread: plan, outputs, queue.
#include "aten/GenericCall.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <c10/core/DeviceGuard.h>

#include "aten/Resize.h"
#include "runtime/Allocator.h"
#include "runtime/Launch.h"

namespace torch_accel::generic {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

void resizeOutputs(const ParsedCall& call, const Plan& plan, bool plan_is_new) {
  for (const ResizePlan& resize : plan.resizes) {
    const at::Tensor& tensor = *call.slots[resize.slot].tensor;
    if (!(plan_is_new && resize.warned)) at::native::resize_output_check(tensor, resize.sizes);
    resizeTensor(tensor.unsafeGetTensorImpl(), resize.sizes, at::IntArrayRef(resize.strides));
  }
}

// Replaces the arguments on the stack by the results.
void finish(Stack& stack, const OpRecord& record, Stack results) {
  stack.resize(stack.size() - record.size());
  for (c10::IValue& result : results) stack.push_back(std::move(result));
}

Stack carryOut(const ParsedCall& call, const Stack& stack, std::shared_ptr<const Plan> plan,
               bool plan_is_new) {
  resizeOutputs(call, *plan, plan_is_new);
  std::vector<at::Tensor> fresh;
  Stack results;
  results.reserve(plan->returns.size());
  for (const ReturnPlan& one : plan->returns) {
    if (!one.is_list && one.outputs[0].kind == OutputPlan::Kind::kConstant) {
      results.push_back(one.outputs[0].constant);
      continue;
    }
    std::vector<at::Tensor> items;
    for (const OutputPlan& output : one.outputs) {
      at::Tensor tensor = makeOutput(call, output);
      if (output.kind == OutputPlan::Kind::kFresh) fresh.push_back(tensor);
      if (one.is_list) {
        items.push_back(std::move(tensor));
      } else {
        results.emplace_back(std::move(tensor));
      }
    }
    if (one.is_list) results.emplace_back(c10::List<at::Tensor>(std::move(items)));
  }
  if (plan->queue) queueKernel(call, stack, std::move(plan), fresh);
  return results;
}

// No plan: the CPU kernel is asked, and says what is wrong with the arguments, or computes.
Stack askTheCpu(const ParsedCall& call, const Stack& stack, uint64_t hash) {
  Stack results = fallback(call, stack);
  auto plan = std::make_shared<Plan>();
  plan->fallback = true;
  call.record->cache.insert(call.key, hash, std::move(plan));
  return results;
}

}  // namespace

at::Tensor makeOutput(const ParsedCall& call, const OutputPlan& plan) {
  switch (plan.kind) {
    case OutputPlan::Kind::kFresh:
      return at::Tensor(at::detail::empty_strided_generic(plan.sizes, plan.strides,
                                                          deviceAllocator(), kKeys, plan.dtype));
    case OutputPlan::Kind::kArgument:
      return plan.slot < 0 ? at::Tensor() : *call.slots[plan.slot].tensor;
    case OutputPlan::Kind::kView: {
      const at::Tensor& base = *call.slots[plan.slot].tensor;
      at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
          c10::TensorImpl::VIEW, c10::Storage(base.storage()), base.key_set(),
          c10::scalarTypeToTypeMeta(plan.dtype));
      const auto itemsize = static_cast<int64_t>(view.element_size());
      const auto start = base.storage_offset() * static_cast<int64_t>(base.element_size());
      view.unsafeGetTensorImpl()->set_sizes_and_strides(plan.sizes, plan.strides,
                                                        (start + plan.offset) / itemsize);
      return view;
    }
    case OutputPlan::Kind::kUndefined:
    case OutputPlan::Kind::kConstant:
      break;
  }
  return {};
}

void GenericFunctor::operator()(const c10::OperatorHandle&, c10::DispatchKeySet,
                                Stack* stack) const {
  const OpRecord& record = *record_;
  if (C10_UNLIKELY(lookingForShapes() && record.has_out)) {
    // Called by the composite kernel for the outputs that it allocated: they are all it wanted.
    Stack outs;
    for (const int index : record.return_argument) {
      outs.push_back((*stack)[stack->size() - record.size() + static_cast<size_t>(index)]);
    }
    return finish(*stack, record, std::move(outs));
  }
  ParsedCall call;
  parseCall(record, *stack, call);
  const c10::DeviceGuard guard(call.device);
  if (record.source == Source::kFallback) return finish(*stack, record, fallback(call, *stack));

  const uint64_t hash = hashKey(call.key);
  std::shared_ptr<const Plan> plan = record.cache.find(call.key, hash);
  const bool plan_is_new = !plan;
  if (C10_UNLIKELY(plan_is_new)) {
    const uint64_t waits = launchCounters().synchronous;
    plan = makePlan(call, *stack);
    if (!plan) return finish(*stack, record, askTheCpu(call, *stack, hash));
    // A shape function that had to read data speaks for this call only.
    if (waits == launchCounters().synchronous) record.cache.insert(call.key, hash, plan);
  }
  if (C10_UNLIKELY(plan->fallback)) return finish(*stack, record, fallback(call, *stack));
  finish(*stack, record, carryOut(call, *stack, std::move(plan), plan_is_new));
}

}  // namespace torch_accel::generic
