// Structured operators: functional, in-place and out= forms from one class.
//
// PyTorch describes a structured operator by a class whose meta() checks arguments and announces
// the outputs, and whose impl() computes them. What is left to a backend is to supply the outputs;
// that is Structured<Op, form>. functional<Op>, inplace<Op> and out<Op> are the functions to
// register.
//
// A vendor replaces: the allocation in prepare().
#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

#include <array>
#include <tuple>

#include "runtime/Allocator.h"
#include "runtime/Device.h"

namespace torch_accel {

enum class Form { kFunctional, kInplace, kOut };

// A new device tensor, or `out` made fit, or `self` found fit; raises in torch's words if it is
// not.
at::Tensor newOutput(at::IntArrayRef sizes, at::IntArrayRef strides,
                     const c10::TensorOptions& options);
void fitOutput(const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides,
               const c10::TensorOptions& options);
void checkInplace(const at::Tensor& self, at::IntArrayRef sizes, const c10::TensorOptions& options);

template <class Op, Form kForm, size_t kOutputs>
class Structured final : public Op {
 public:
  Structured() = default;
  explicit Structured(std::array<at::Tensor*, kOutputs> given) : given_(given) {}

  // Strides that the operator requires: another layout of the given output gets a stand-in.
  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                          c10::TensorOptions options) override {
    prepare(index, sizes, strides, options);
    if (kForm != Form::kFunctional && !strides.empty() && given_[index]->strides() != strides) {
      outputs_[index] = newOutput(sizes, strides, options);
    }
    announce(index, sizes, strides, options);
  }

  // Strides that the operator suggests.
  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                              c10::TensorOptions options) override {
    prepare(index, sizes, strides, options);
    announce(index, sizes, strides, options);
  }

  const at::Tensor& maybe_get_output(int64_t index) override {
    return kForm == Form::kFunctional || outputs_[index].defined() ? outputs_[index]
                                                                   : *given_[index];
  }

  const at::Tensor& output(size_t index) { return maybe_get_output(static_cast<int64_t>(index)); }

  // Stand-ins are copied to what they stand for.
  void finish() {
    if constexpr (kForm != Form::kFunctional) {
      for (size_t i = 0; i < kOutputs; ++i) {
        if (outputs_[i].defined()) given_[i]->copy_(outputs_[i]);
      }
    }
  }

  std::array<at::Tensor, kOutputs>& outputs() { return outputs_; }

 private:
  void prepare(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
               const c10::TensorOptions& options) {
    if constexpr (kForm == Form::kFunctional) {
      outputs_[index] = newOutput(sizes, strides, options);
    } else if constexpr (kForm == Form::kOut) {
      fitOutput(*given_[index], sizes, strides, options);
    } else {
      checkInplace(*given_[index], sizes, options);
    }
  }

  void announce(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                const c10::TensorOptions& options) {
    if constexpr (std::is_base_of_v<at::TensorIteratorBase, Op>) {
      Op::set_output_raw_strided(index, sizes, strides, options);
    }
  }

  std::array<at::Tensor*, kOutputs> given_{};
  std::array<at::Tensor, kOutputs> outputs_;
};

namespace detail {

inline void enterDevice(c10::OptionalDeviceGuard&) {}
template <class First, class... Rest>
void enterDevice(c10::OptionalDeviceGuard& guard, const First& first, const Rest&... rest) {
  if constexpr (std::is_same_v<First, at::Tensor>) {
    if (first.is_privateuseone()) {
      guard.reset_device(first.device());
      return;
    }
  }
  enterDevice(guard, rest...);
}

// Arguments of impl() that the dispatcher passes as another type.
template <class T>
struct Dispatched {
  using type = T;
  static T adapt(T value) { return value; }
};
template <>
struct Dispatched<at::OptionalScalarRef> {
  using type = const std::optional<at::Scalar>&;
  static at::OptionalScalarRef adapt(type value) {
    return value ? at::OptionalScalarRef(&*value) : at::OptionalScalarRef();
  }
};
template <>
struct Dispatched<at::OptionalTensorRef> {
  using type = const std::optional<at::Tensor>&;
  static at::OptionalTensorRef adapt(type value) {
    return value ? at::OptionalTensorRef(*value) : at::OptionalTensorRef();
  }
};

template <class Op, class... Args>
std::tuple<Args...> argumentsOf(void (Op::*)(Args...));
template <class Op>
using ImplArguments = decltype(argumentsOf(&Op::impl));

// The arguments of an operator are those of impl() without the outputs, which come last.
template <class Op, size_t kOutputs,
          class = std::make_index_sequence<std::tuple_size_v<ImplArguments<Op>> - kOutputs>>
struct Forms;

template <class Op, size_t kOutputs, size_t... I>
struct Forms<Op, kOutputs, std::index_sequence<I...>> {
  template <size_t J>
  using Adapter = Dispatched<std::tuple_element_t<J, ImplArguments<Op>>>;
  template <size_t J>
  using Arg = typename Adapter<J>::type;

  template <Form kForm, size_t... O>
  static void run(Structured<Op, kForm, kOutputs>& op, std::index_sequence<O...>, Arg<I>... args) {
    op.meta(Adapter<I>::adapt(args)...);
    op.impl(Adapter<I>::adapt(args)..., op.output(O)...);
    op.finish();
  }

  static auto functional(Arg<I>... args) {
    c10::OptionalDeviceGuard guard;
    enterDevice(guard, args...);
    Structured<Op, Form::kFunctional, kOutputs> op;
    run(op, std::make_index_sequence<kOutputs>(), args...);
    if constexpr (kOutputs == 1) {
      return std::move(op.outputs()[0]);
    } else {
      return std::tuple_cat(std::move(op.outputs()));
    }
  }

  static at::Tensor& out(Arg<I>... args, at::Tensor& out) requires(kOutputs == 1) {
    c10::OptionalDeviceGuard guard;
    enterDevice(guard, out, args...);
    Structured<Op, Form::kOut, 1> op({&out});
    run(op, std::make_index_sequence<1>(), args...);
    return out;
  }

  static std::tuple<at::Tensor&, at::Tensor&> outs(Arg<I>... args, at::Tensor& first,
                                                   at::Tensor& second) requires(kOutputs == 2) {
    c10::OptionalDeviceGuard guard;
    enterDevice(guard, first, args...);
    Structured<Op, Form::kOut, 2> op({&first, &second});
    run(op, std::make_index_sequence<2>(), args...);
    return {first, second};
  }
};

// In place, the first argument is the output too.
template <class Op, class = std::make_index_sequence<std::tuple_size_v<ImplArguments<Op>> - 2>>
struct InplaceForm;

template <class Op, size_t... I>
struct InplaceForm<Op, std::index_sequence<I...>> {
  template <size_t J>
  using Adapter = Dispatched<std::tuple_element_t<J + 1, ImplArguments<Op>>>;

  static at::Tensor& inplace(at::Tensor& self, typename Adapter<I>::type... args) {
    c10::OptionalDeviceGuard guard;
    enterDevice(guard, self);
    Structured<Op, Form::kInplace, 1> op({&self});
    op.meta(self, Adapter<I>::adapt(args)...);
    op.impl(self, Adapter<I>::adapt(args)..., op.output(0));
    op.finish();
    return self;
  }
};

}  // namespace detail

// What to register for a structured operator with one output.
template <class Op>
inline constexpr auto* functional = &detail::Forms<Op, 1>::functional;
template <class Op>
inline constexpr auto* inplace = &detail::InplaceForm<Op>::inplace;
template <class Op>
inline constexpr auto* out = &detail::Forms<Op, 1>::out;
// With two outputs: a tuple.
template <class Op>
inline constexpr auto* functional2 = &detail::Forms<Op, 2>::functional;
template <class Op>
inline constexpr auto* out2 = &detail::Forms<Op, 2>::outs;

}  // namespace torch_accel
