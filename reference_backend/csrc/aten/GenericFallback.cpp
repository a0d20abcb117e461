// The fallback: operators whose result shapes are known only when the CPU kernel has run.
//
// The kernel runs on the stream's worker as any other, in order with the stream; the caller waits
// for it, allocates device tensors for what it computed, and queues the copies.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>

#include "aten/GenericCall.h"
#include "aten/Resize.h"
#include "runtime/Allocator.h"
#include "runtime/Launch.h"
#include "runtime/Stream.h"

namespace torch_accel::generic {
namespace {

// A result as the worker left it. CPU tensors own their memory: none is an alias of device memory.
struct Computed {
  OutputPlan plan;
  at::Tensor value;  // for kFresh
};
struct ComputedReturn {
  bool is_list = false;
  std::vector<Computed> items;
};
struct Rewritten {
  int slot;
  at::Tensor value;
};

at::Tensor owned(const at::Tensor& tensor, const std::vector<at::Tensor>& aliases) {
  const at::Tensor plain = tensor.resolve_conj().resolve_neg();
  for (const at::Tensor& alias : aliases) {
    if (plain.is_alias_of(alias)) return plain.clone();
  }
  // The device tensor gets the same strides, gaps included; but each element needs its own place.
  for (int64_t d = 0; d < plain.dim(); ++d) {
    if (plain.stride(d) == 0 && plain.size(d) > 1) return plain.contiguous();
  }
  return plain;
}

Computed classify(const at::Tensor& tensor, const std::vector<at::Tensor>& aliases) {
  Computed result;
  if (!tensor.defined()) {
    result.plan.kind = OutputPlan::Kind::kUndefined;
    return result;
  }
  for (size_t i = 0; i < aliases.size(); ++i) {
    if (!tensor.is_same(aliases[i])) continue;
    result.plan.kind = OutputPlan::Kind::kArgument;
    result.plan.slot = static_cast<int>(i);
    return result;
  }
  result.value = owned(tensor, aliases);
  result.plan.dtype = result.value.scalar_type();
  result.plan.sizes = result.value.sizes();
  result.plan.strides = result.value.strides();
  return result;
}

// Copies CPU tensors, which the task owns alone, into device memory.
void queueCopies(c10::Stream stream, const std::string& name, std::vector<at::Tensor> values,
                 std::vector<TensorRecipe> targets) {
  if (values.empty()) return;
  launch(stream, name.c_str(), [values = std::move(values), targets = std::move(targets)] {
    AliasMaker maker;
    for (size_t i = 0; i < values.size(); ++i) maker.make(targets[i]).copy_(values[i]);
  });
}

}  // namespace

Stack fallback(const ParsedCall& call, const Stack& stack) {
  const OpRecord& record = *call.record;
  const c10::Stream stream = currentStream(call.device.index());
  const Arguments arguments(call, stack);
  std::vector<ComputedReturn> computed;
  std::vector<Rewritten> rewritten;
  Stack constants;
  launchAndWait(stream, record.name.c_str(), [&] {
    AliasMaker maker;
    Stack results;
    std::vector<at::Tensor> aliases;
    arguments.makeStack(maker, results, aliases);
    runOnCpu(record.op, results, arguments.hasLazyBits());
    for (const c10::IValue& value : results) {
      ComputedReturn one;
      if (value.isTensor()) {
        one.items.push_back(classify(value.toTensor(), aliases));
      } else if (value.isTensorList()) {
        one.is_list = true;
        for (const at::Tensor& item : value.toTensorVector()) {
          one.items.push_back(classify(item, aliases));
        }
      } else {
        Computed constant;
        constant.plan.kind = OutputPlan::Kind::kConstant;
        constant.plan.constant = value;
        one.items.push_back(std::move(constant));
      }
      computed.push_back(std::move(one));
    }
    for (size_t i = 0; i < aliases.size(); ++i) {
      const int slot = static_cast<int>(i);
      if (!arguments.written(slot)) continue;
      const TensorRecipe& recipe = arguments.recipe(slot);
      const bool moved = aliases[i].storage().data() != kernelPointer(recipe.storage_address);
      if (moved || aliases[i].sizes() != at::IntArrayRef(recipe.sizes)) {
        rewritten.push_back({slot, aliases[i].clone()});
      }
    }
  });
  countFallback(record);

  std::vector<at::Tensor> values;
  std::vector<TensorRecipe> targets;
  for (const Rewritten& one : rewritten) {
    const at::Tensor& target = *call.slots[one.slot].tensor;
    if (at::native::resize_output_check(target, one.value.sizes())) {
      resizeTensor(target.unsafeGetTensorImpl(), one.value.sizes());
    }
    values.push_back(one.value);
    targets.push_back(TensorRecipe::of(target));
  }
  Stack outputs;
  for (ComputedReturn& one : computed) {
    std::vector<at::Tensor> items;
    for (Computed& item : one.items) {
      if (item.plan.kind == OutputPlan::Kind::kConstant) {
        outputs.push_back(item.plan.constant);
        continue;
      }
      items.push_back(makeOutput(call, item.plan));
      if (item.plan.kind == OutputPlan::Kind::kFresh) {
        targets.push_back(TensorRecipe::of(items.back()));
        values.push_back(std::move(item.value));
      }
    }
    if (one.is_list) {
      outputs.emplace_back(c10::List<at::Tensor>(std::move(items)));
    } else if (!items.empty()) {
      outputs.emplace_back(std::move(items[0]));
    }
  }
  queueCopies(stream, record.name, std::move(values), std::move(targets));
  return outputs;
}

}  // namespace torch_accel::generic
