// Metadata of an operator's outputs before its kernel has run: PyTorch's own shape functions.
//
// Three sources. A structured operator has a composite kernel that works in C++ on device tensors:
// it finds the shapes, allocates, and calls the out= variant, which does nothing while we look. The
// others are asked on meta tensors; most of those kernels are Python and cost up to a millisecond,
// hence the cache. Where no shape function tells what the CPU kernel does, that is tried on made-up
// values.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "aten/GenericOp.h"
#include "aten/GenericStandIns.h"

namespace torch_accel::generic {
namespace {

thread_local bool looking = false;

struct LookingGuard {
  LookingGuard() { looking = true; }
  ~LookingGuard() { looking = false; }
};

// Passes warnings on, but for those about resized outputs: the caller resizes, and warns, itself.
class MetaWarnings final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    if (warning.msg().rfind("An output with one or more elements was resized", 0) == 0) return;
    outer_->process(warning);
  }

 private:
  c10::WarningHandler* outer_ = c10::WarningUtils::get_warning_handler();
};

OutputPlan fresh(const at::Tensor& tensor) {
  OutputPlan output;
  output.dtype = tensor.scalar_type();
  output.sizes = tensor.sizes();
  output.strides = tensor.strides();
  return output;
}

OutputPlan argument(int slot) {
  OutputPlan output;
  output.kind = OutputPlan::Kind::kArgument;
  output.slot = slot;
  return output;
}

int firstSlotOf(const ParsedCall& call, int argument, int item = -1) {
  for (size_t i = 0; i < call.slots.size(); ++i) {
    const Slot& slot = call.slots[i];
    if (slot.argument == argument && slot.item == item) return static_cast<int>(i);
  }
  return -1;
}

// A return that is a written argument, by the schema. A list: all its tensors.
ReturnPlan writtenReturn(const ParsedCall& call, const Stack& stack, int index) {
  const c10::IValue& value = stack[stack.size() - call.record->size() + index];
  ReturnPlan result;
  result.is_list = call.record->arguments[index].kind == ArgumentKind::kTensorList;
  if (result.is_list) {
    const int count = static_cast<int>(value.toListRef().size());
    for (int i = 0; i < count; ++i) {
      result.outputs.push_back(argument(firstSlotOf(call, index, i)));
    }
  } else {
    result.outputs.push_back(argument(firstSlotOf(call, index)));
  }
  return result;
}

OutputPlan outputOf(const StandIns& stand_ins, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    OutputPlan undefined;
    undefined.kind = OutputPlan::Kind::kUndefined;
    return undefined;
  }
  if (const int slot = stand_ins.slotOf(tensor); slot >= 0) return argument(slot);
  OutputPlan output = fresh(tensor);
  if (const int slot = stand_ins.slotSharing(tensor); slot >= 0) {
    const at::Tensor& base = stand_ins.tensor(slot);
    output.kind = OutputPlan::Kind::kView;
    output.slot = slot;
    output.offset = tensor.storage_offset() * static_cast<int64_t>(tensor.element_size()) -
                    base.storage_offset() * static_cast<int64_t>(base.element_size());
  }
  return output;
}

// True when what the kernel computes hangs on the default dtype: floating results of integers.
bool defaultDtypeMatters(const ParsedCall& call, const Plan& plan) {
  for (const Slot& slot : call.slots) {
    if (!c10::isIntegralType(slot.tensor->scalar_type(), /*includeBool=*/true)) return false;
  }
  for (const ReturnPlan& one : plan.returns) {
    for (const OutputPlan& output : one.outputs) {
      if (output.kind == OutputPlan::Kind::kFresh &&
          !c10::isIntegralType(output.dtype, /*includeBool=*/true)) {
        return true;
      }
    }
  }
  return false;
}

std::shared_ptr<Plan> planFromComposite(const ParsedCall& call, const Stack& stack) {
  const OpRecord& record = *call.record;
  Stack copy(stack.end() - static_cast<ptrdiff_t>(record.size()), stack.end());
  {
    const LookingGuard guard;
    record.op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse3), &copy);
  }
  auto plan = std::make_shared<Plan>();
  plan->run_as = record.out_variant;
  for (const c10::IValue& value : copy) plan->returns.push_back({false, {fresh(value.toTensor())}});
  return plan;
}

// `type`: kMeta for the shape function, kCPU for a dry run.
std::shared_ptr<Plan> planFromStandIns(const ParsedCall& call, const Stack& stack,
                                       c10::DeviceType type) {
  const OpRecord& record = *call.record;
  const StandIns stand_ins(call, type);
  Stack results = stand_ins.makeStack(stack);
  if (type == c10::kCPU) {
    runOnCpu(record.op, results, stand_ins.lazyBits());
  } else {
    record.op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &results);
  }
  auto plan = std::make_shared<Plan>();
  bool all_views = !results.empty();
  for (size_t r = 0; r < record.return_argument.size(); ++r) {
    if (const int index = record.return_argument[r]; index >= 0) {
      plan->returns.push_back(writtenReturn(call, stack, index));
      all_views = false;
      continue;
    }
    const c10::IValue& value = results[r];
    ReturnPlan one;
    if (value.isTensor()) {
      one.outputs.push_back(outputOf(stand_ins, value.toTensor()));
    } else if (value.isTensorList()) {
      one.is_list = true;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        one.outputs.push_back(outputOf(stand_ins, tensor));
      }
    } else {
      OutputPlan constant;
      constant.kind = OutputPlan::Kind::kConstant;
      constant.constant = value;
      one.outputs.push_back(std::move(constant));
    }
    for (const OutputPlan& output : one.outputs) {
      all_views = all_views && output.kind == OutputPlan::Kind::kView;
    }
    plan->returns.push_back(std::move(one));
  }
  plan->queue = !all_views;
  for (size_t i = 0; i < call.slots.size(); ++i) {
    const Slot& slot = call.slots[i];
    if (slot.on_host || slot.same != static_cast<int32_t>(i)) continue;
    const at::Tensor& after = stand_ins.tensor(i);
    if (after.sizes() == slot.tensor->sizes()) continue;
    if (!record.arguments[slot.argument].out) return nullptr;  // not seen in torch: ask the CPU
    plan->resizes.push_back({static_cast<int>(i), Sizes(after.sizes()), Sizes(after.strides()),
                             record.python_meta && type == c10::kMeta});
  }
  return plan;
}

// Every return is a written argument.
std::shared_ptr<Plan> planWritten(const ParsedCall& call, const Stack& stack) {
  auto plan = std::make_shared<Plan>();
  for (const int index : call.record->return_argument) {
    plan->returns.push_back(writtenReturn(call, stack, index));
  }
  return plan;
}

std::shared_ptr<Plan> planFirstLike(const ParsedCall& call) {
  auto plan = std::make_shared<Plan>();
  for (size_t r = 0; r < call.record->return_argument.size(); ++r) {
    plan->returns.push_back({false, {fresh(*call.slots[0].tensor)}});
  }
  return plan;
}

}  // namespace

bool lookingForShapes() {
  return looking;
}

std::shared_ptr<const Plan> makePlan(const ParsedCall& call, const Stack& stack) {
  const OpRecord& record = *call.record;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::DisableRecordFunctionGuard unobserved;
  const c10::AutoGradMode no_grad(false);
  MetaWarnings warnings;
  const c10::WarningUtils::WarningHandlerGuard warning_guard(&warnings);
  std::shared_ptr<Plan> plan;
  try {
    switch (record.source) {
      case Source::kMeta:
        if (record.check) record.check(call, stack);
        if (!kernelTakes(call, stack)) return nullptr;
        plan = record.out_variant ? planFromComposite(call, stack)
                                  : planFromStandIns(call, stack, c10::kMeta);
        break;
      case Source::kDryRun:
        plan = planFromStandIns(call, stack, c10::kCPU);
        break;
      case Source::kWritten:
        plan = planWritten(call, stack);
        break;
      case Source::kFirstLike:
        plan = planFirstLike(call);
        break;
      case Source::kFallback:
        break;
    }
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::exception&) {
    return nullptr;  // the CPU kernel says it better, or does not mind
  }
  if (plan) plan->default_dtype_matters = defaultDtypeMatters(call, *plan);
  return plan;
}

}  // namespace torch_accel::generic
