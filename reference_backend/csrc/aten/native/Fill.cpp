// fill_ and zero_.
#include "aten/native/Vectorize.h"
//
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Fill.h>
#include <ATen/ops/fill_native.h>
#include <ATen/ops/zero_native.h>
#include <c10/core/Scalar.h>
#include <torch/library.h>

#include "aten/native/Elementwise.h"

namespace torch_accel {
namespace {

constexpr TypeList<c10::Float8_e5m2, c10::Float8_e4m3fn, c10::Float8_e5m2fnuz, c10::Float8_e4m3fnuz,
                   c10::Float8_e8m0fnu>
    kFloat8Types;
constexpr auto kTypes = kBoolType + kIntegerTypes + kWideUnsignedTypes + kFloatingTypes +
                        kComplexTypes + kComplexHalfType + kFloat8Types;

struct alignas(8) Bytes16 {
  uint64_t low, high;
};

// The value's bytes in the output's dtype; the kernel needs their number only.
template <class... Ts>
Bytes16 valueBytes(const at::Scalar& value, c10::ScalarType dtype, TypeList<Ts...>) {
  Bytes16 bytes{};
  const auto put = [&](const auto& typed) { std::memcpy(&bytes, &typed, sizeof(typed)); };
  const bool found = ((dtype == dtypeOf<Ts> && (put(value.to<Ts>()), true)) || ...);
  TORCH_CHECK_NOT_IMPLEMENTED(found, "\"fill_cpu\" not implemented for '", c10::toString(dtype),
                              "'");
  return bytes;
}

template <class Unit>
ACCEL_VECTORIZE void fillLoop(const void* op, char* out, const char* const*, int64_t count) {
  const Unit value = *static_cast<const Unit*>(op);
  auto* units = reinterpret_cast<Unit*>(out);
  for (int64_t i = 0; i < count; ++i) units[i] = value;
}

void fillKernel(at::TensorIterator& iter, const at::Scalar& value) {
  Block block;
  block.out_type = iter.dtype();
  const Bytes16 bytes = valueBytes(value, iter.dtype(), kTypes);
  std::memcpy(block.op.data(), &bytes, sizeof(bytes));
  switch (c10::elementSize(iter.dtype())) {
    case 1:
      block.fn = &fillLoop<uint8_t>;
      break;
    case 2:
      block.fn = &fillLoop<uint16_t>;
      break;
    case 4:
      block.fn = &fillLoop<uint32_t>;
      break;
    case 8:
      block.fn = &fillLoop<uint64_t>;
      break;
    default:
      block.fn = &fillLoop<Bytes16>;
  }
  elementwise(iter, "fill_", block);
}

}  // namespace
}  // namespace torch_accel

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(fill_stub, &torch_accel::fillKernel)
}  // namespace at::native

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  using ScalarFill = at::Tensor& (*)(at::Tensor&, const at::Scalar&);
  using TensorFill = at::Tensor& (*)(at::Tensor&, const at::Tensor&);
  m.impl("fill_.Scalar", static_cast<ScalarFill>(&at::native::fill_));
  m.impl("fill_.Tensor", static_cast<TensorFill>(&at::native::fill_));
  m.impl("zero_", &at::native::zero_);
}
