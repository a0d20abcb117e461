// Comparisons, bitwise and logical operators, shifts.
#include "aten/native/Vectorize.h"
//
#include <ATen/native/BinaryOps.h>

#include "aten/native/Elementwise.h"
#include "aten/native/Numeric.h"

namespace torch_accel {
namespace {

constexpr auto kReal = kBoolType + kIntegerTypes + kWideUnsignedTypes + kFloatingTypes;
constexpr auto kAll = kReal + kComplexTypes + kComplexHalfType;

template <class Types, class Op>
void compare(at::TensorIteratorBase& iter, const char* name, Types types, Op op) {
  elementwise(iter, name,
              selectType(iter.common_dtype(), name, types,
                         [&](auto tag) {
                           using T = typename decltype(tag)::type;
                           return makeBlock<bool, T, T>(op);
                         }),
              Precision::kCommonDtype);
}

void eqKernel(at::TensorIteratorBase& iter) {
  compare(iter, "eq_cpu", kAll, [](auto a, auto b) ACCEL_INLINE { return a == b; });
}
void neKernel(at::TensorIteratorBase& iter) {
  compare(iter, "ne_cpu", kAll, [](auto a, auto b) ACCEL_INLINE { return a != b; });
}
void ltKernel(at::TensorIteratorBase& iter) {
  compare(iter, "lt_cpu", kReal, [](auto a, auto b) ACCEL_INLINE { return a < b; });
}
void leKernel(at::TensorIteratorBase& iter) {
  compare(iter, "le_cpu", kReal, [](auto a, auto b) ACCEL_INLINE { return a <= b; });
}
void gtKernel(at::TensorIteratorBase& iter) {
  compare(iter, "gt_cpu", kReal, [](auto a, auto b) ACCEL_INLINE { return a > b; });
}
void geKernel(at::TensorIteratorBase& iter) {
  compare(iter, "ge_cpu", kReal, [](auto a, auto b) ACCEL_INLINE { return a >= b; });
}

template <class Types, class Op>
void integers(at::TensorIteratorBase& iter, const char* name, Types types, Op op) {
  elementwise(iter, name, selectType(iter.common_dtype(), name, types, [&](auto tag) {
                using T = typename decltype(tag)::type;
                return makeBlock<T, T, T>(op);
              }));
}

constexpr auto kBits = kBoolType + kIntegerTypes + kWideUnsignedTypes;

void bitwiseAndKernel(at::TensorIteratorBase& iter) {
  integers(iter, "bitwise_and_cpu", kBits,
           [](auto a, auto b) ACCEL_INLINE { return static_cast<decltype(a)>(a & b); });
}
void bitwiseOrKernel(at::TensorIteratorBase& iter) {
  integers(iter, "bitwise_or_cpu", kBits,
           [](auto a, auto b) ACCEL_INLINE { return static_cast<decltype(a)>(a | b); });
}
void bitwiseXorKernel(at::TensorIteratorBase& iter) {
  integers(iter, "bitwise_xor_cpu", kBits,
           [](auto a, auto b) ACCEL_INLINE { return static_cast<decltype(a)>(a ^ b); });
}
void leftShiftKernel(at::TensorIteratorBase& iter) {
  integers(iter, "lshift_cpu", kIntegerTypes,
           [](auto a, auto b) ACCEL_INLINE { return numeric::shiftLeft(a, b); });
}
void rightShiftKernel(at::TensorIteratorBase& iter) {
  integers(iter, "rshift_cpu", kIntegerTypes,
           [](auto a, auto b) ACCEL_INLINE { return numeric::shiftRight(a, b); });
}

// Logical operators take any dtypes and write any dtype; values are compared with 0.
template <class Op>
void logical(at::TensorIterator& iter, const char* name, Op op) {
  elementwise(iter, name, selectType(iter.common_dtype(), name, kAll, [&](auto tag) {
                using T = typename decltype(tag)::type;
                return makeBlock<bool, T, T>([op](T a, T b)
                                                 ACCEL_INLINE { return op(a != T(0), b != T(0)); });
              }));
}

void logicalAndKernel(at::TensorIterator& iter) {
  logical(iter, "logical_and_cpu", [](bool a, bool b) ACCEL_INLINE { return a && b; });
}
void logicalOrKernel(at::TensorIterator& iter) {
  logical(iter, "logical_or_cpu", [](bool a, bool b) ACCEL_INLINE { return a || b; });
}
void logicalXorKernel(at::TensorIterator& iter) {
  logical(iter, "logical_xor_cpu", [](bool a, bool b) ACCEL_INLINE { return a != b; });
}

}  // namespace
}  // namespace torch_accel

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(eq_stub, &torch_accel::eqKernel)
REGISTER_PRIVATEUSE1_DISPATCH(ne_stub, &torch_accel::neKernel)
REGISTER_PRIVATEUSE1_DISPATCH(lt_stub, &torch_accel::ltKernel)
REGISTER_PRIVATEUSE1_DISPATCH(le_stub, &torch_accel::leKernel)
REGISTER_PRIVATEUSE1_DISPATCH(gt_stub, &torch_accel::gtKernel)
REGISTER_PRIVATEUSE1_DISPATCH(ge_stub, &torch_accel::geKernel)
REGISTER_PRIVATEUSE1_DISPATCH(bitwise_and_stub, &torch_accel::bitwiseAndKernel)
REGISTER_PRIVATEUSE1_DISPATCH(bitwise_or_stub, &torch_accel::bitwiseOrKernel)
REGISTER_PRIVATEUSE1_DISPATCH(bitwise_xor_stub, &torch_accel::bitwiseXorKernel)
REGISTER_PRIVATEUSE1_DISPATCH(lshift_stub, &torch_accel::leftShiftKernel)
REGISTER_PRIVATEUSE1_DISPATCH(rshift_stub, &torch_accel::rightShiftKernel)
REGISTER_PRIVATEUSE1_DISPATCH(logical_and_stub, &torch_accel::logicalAndKernel)
REGISTER_PRIVATEUSE1_DISPATCH(logical_or_stub, &torch_accel::logicalOrKernel)
REGISTER_PRIVATEUSE1_DISPATCH(logical_xor_stub, &torch_accel::logicalXorKernel)

}  // namespace at::native
