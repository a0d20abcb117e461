// The queued half of the generic mechanism: CPU kernels on aliases of device memory, on the worker.
#include <ATen/Parallel.h>
#include <c10/core/DefaultDtype.h>

#include <cstring>

#include "aten/GenericOp.h"
#include "runtime/Launch.h"
#include "runtime/Stream.h"

namespace torch_accel::generic {
namespace {

// The CPU's thread count decides how its kernels split a reduction: take the caller's.
void useThreads(int count) {
  static thread_local int current = -1;
  if (current == count) return;
  if (at::get_num_threads() != count) at::set_num_threads(count);
  current = count;
}

// The default dtype is a process-wide global that kernels read when they run, and a worker must not
// set it under the host's feet. Where it matters, queueKernel() waits unless it was float32. A host
// that widened it meanwhile gets what a wider computation rounds to.
void checkDefaultDtype(caffe2::TypeMeta wanted) {
  TORCH_CHECK(c10::get_default_dtype().itemsize() >= wanted.itemsize(),
              "the default dtype was changed from ", wanted, " to ", c10::get_default_dtype(),
              " while the operator was queued; synchronize before changing it");
}

bool bothInexact(c10::ScalarType a, c10::ScalarType b) {
  return (c10::isFloatingType(a) && c10::isFloatingType(b)) ||
         (c10::isComplexType(a) && c10::isComplexType(b));
}

void copyInto(const at::Tensor& target, const at::Tensor& value) {
  const bool plain = value.scalar_type() == target.scalar_type() && !value.is_conj() &&
                     !value.is_neg() && !target.is_conj() && !target.is_neg();
  if (plain && value.strides() == target.strides() && value.is_non_overlapping_and_dense()) {
    if (value.numel() > 0) {
      std::memcpy(target.mutable_data_ptr(), value.const_data_ptr(), value.nbytes());
    }
  } else {
    target.copy_(value);
  }
}

class GenericKernel final : public Kernel {
 public:
  GenericKernel(const ParsedCall& call, const Stack& stack, std::shared_ptr<const Plan> plan,
                const std::vector<at::Tensor>& fresh)
      : arguments_(call, stack),
        plan_(std::move(plan)),
        threads_(at::get_num_threads()),
        default_dtype_(c10::get_default_dtype()) {
    fresh_.reserve(fresh.size());
    for (const at::Tensor& tensor : fresh) fresh_.push_back(TensorRecipe::of(tensor));
  }

  void run() override {
    useThreads(threads_);
    if (plan_->default_dtype_matters) checkDefaultDtype(default_dtype_);
    AliasMaker maker;
    Stack stack;
    std::vector<at::Tensor> tensors;
    arguments_.makeStack(maker, stack, tensors);
    if (plan_->run_as) {
      std::vector<at::Tensor> outs;
      for (const TensorRecipe& recipe : fresh_) {
        outs.push_back(maker.make(recipe));
        stack.emplace_back(outs.back());
      }
      runOnCpu(plan_->run_as->op, stack, arguments_.hasLazyBits());
      for (size_t i = 0; i < outs.size(); ++i) settle(outs[i], fresh_[i]);
    } else {
      runOnCpu(arguments_.record().op, stack, arguments_.hasLazyBits());
      writeReturns(maker, stack, tensors);
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (arguments_.written(static_cast<int>(i))) {
        settle(tensors[i], arguments_.recipe(static_cast<int>(i)));
      }
    }
  }

 private:
  void writeReturns(AliasMaker& maker, const Stack& results,
                    const std::vector<at::Tensor>& tensors) const {
    TORCH_CHECK(results.size() == plan_->returns.size(), arguments_.record().name, " returned ",
                results.size(), " values, ", plan_->returns.size(), " were promised");
    size_t next = 0;  // in fresh_
    for (size_t r = 0; r < results.size(); ++r) {
      const ReturnPlan& one = plan_->returns[r];
      if (!one.is_list) {
        if (results[r].isTensor()) {
          writeOne(maker, one.outputs[0], results[r].toTensor(), tensors, next);
        }
        continue;
      }
      const std::vector<at::Tensor> items = results[r].toTensorVector();
      TORCH_CHECK(items.size() == one.outputs.size(), arguments_.record().name, " returned ",
                  items.size(), " tensors, ", one.outputs.size(), " were promised");
      for (size_t i = 0; i < items.size(); ++i) {
        writeOne(maker, one.outputs[i], items[i], tensors, next);
      }
    }
  }

  void writeOne(AliasMaker& maker, const OutputPlan& output, const at::Tensor& value,
                const std::vector<at::Tensor>& tensors, size_t& next) const {
    if (output.kind == OutputPlan::Kind::kFresh) {
      const TensorRecipe& recipe = fresh_[next++];
      checkPromise(recipe.sizes, recipe.dtype, value);
      copyInto(maker.make(recipe), value);
    } else if (output.kind == OutputPlan::Kind::kArgument && output.slot >= 0) {
      const at::Tensor& alias = tensors[output.slot];
      if (!value.is_same(alias) && !value.is_alias_of(alias)) {
        checkPromise(alias.sizes(), alias.scalar_type(), value);
        copyInto(alias, value);
      }
    }
  }

  void checkPromise(at::IntArrayRef sizes, c10::ScalarType dtype, const at::Tensor& value) const {
    const bool widened =
        plan_->default_dtype_matters && value.defined() && bothInexact(value.scalar_type(), dtype);
    TORCH_CHECK(
        value.defined() && value.sizes() == sizes && (value.scalar_type() == dtype || widened),
        arguments_.record().name, " computed ", describe(value), ", but its shape function ",
        "promised ", dtype, " of sizes ", sizes);
  }

  static std::string describe(const at::Tensor& value) {
    if (!value.defined()) return "an undefined tensor";
    return c10::str(value.scalar_type(), " of sizes ", value.sizes());
  }

  // A kernel may resize what it writes (some do, to reduce in place), or leave it conjugated: bring
  // the values home.
  void settle(const at::Tensor& alias, const TensorRecipe& recipe) const {
    if (!recipe.storage_address) return;
    if (C10_LIKELY(alias.storage().data() == kernelPointer(recipe.storage_address) &&
                   alias.sizes() == at::IntArrayRef(recipe.sizes) &&
                   alias.is_conj() == recipe.conj && alias.is_neg() == recipe.neg)) {
      return;
    }
    checkPromise(recipe.sizes, recipe.dtype, alias);
    AliasMaker home;
    copyInto(home.make(recipe), alias.resolve_conj().resolve_neg());
  }

  Arguments arguments_;
  std::shared_ptr<const Plan> plan_;
  c10::SmallVector<TensorRecipe, 1> fresh_;
  int threads_;
  caffe2::TypeMeta default_dtype_;
};

}  // namespace

void runOnCpu(const c10::OperatorHandle& op, Stack& stack, bool lazy_bits) {
  if (C10_UNLIKELY(lazy_bits)) {
    op.callBoxed(stack);  // through the Conjugate and Negative keys
  } else {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  }
}

void queueKernel(const ParsedCall& call, const Stack& stack, std::shared_ptr<const Plan> plan,
                 const std::vector<at::Tensor>& fresh) {
  const bool default_matters = plan->default_dtype_matters;
  enqueue(currentStream(call.device.index()), call.record->name.c_str(),
          std::make_unique<GenericKernel>(call, stack, std::move(plan), fresh));
  if (C10_UNLIKELY(default_matters && c10::get_default_dtype_as_scalartype() != c10::kFloat)) {
    synchronizeStream(currentStream(call.device.index()));
  }
}

}  // namespace torch_accel::generic
