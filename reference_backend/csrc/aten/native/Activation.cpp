// Activation functions, their backwards, and clamping.
#include "aten/native/Vectorize.h"
//
#include "aten/native/Activation.h"

#include <ATen/native/Activation.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/TensorCompare.h>
#include <c10/core/Scalar.h>

#include <numbers>

#include "aten/native/Elementwise.h"
#include "aten/native/Numeric.h"
#include "aten/native/VectorMath.h"

namespace torch_accel {
namespace {

constexpr auto kReal = kIntegerTypes + kFloatingTypes;

// Builds a block for the iterator's dtype by `make(tag)` and queues it.
template <class Types, class Make>
void pointwise(at::TensorIteratorBase& iter, const char* name, Types types, Make make) {
  elementwise(iter, name, selectType(iter.common_dtype(), name, types, make));
}

template <class Tag>
using TypeOf = typename Tag::type;

// The second input is what passes: the first itself in forward, the gradient in backward.
void thresholdKernel(at::TensorIteratorBase& iter, const at::Scalar& threshold,
                     const at::Scalar& value) {
  pointwise(iter, "threshold_cpu", kReal, [&](auto tag) {
    using T = TypeOf<decltype(tag)>;
    return makeBlock<T, T, T>([limit = threshold.to<T>(), value = value.to<T>()](T a, T b)
                                  ACCEL_INLINE { return a <= limit ? value : b; });
  });
}

template <class T>
ACCEL_INLINE inline T sigmoid(T a) {
  if constexpr (isComplex<T>) {
    return T(1) / (T(1) + c10_complex_math::exp(-a));
  } else {
    return T(1) / (T(1) + vmath::exp(-a));
  }
}

void siluKernel(at::TensorIteratorBase& iter) {
  pointwise(iter, "silu_cpu", kFloatingTypes + kComplexTypes, [](auto tag) {
    using T = TypeOf<decltype(tag)>;
    return makeBlock<T, T>([](T a) ACCEL_INLINE { return a * sigmoid(a); });
  });
}

void siluBackwardKernel(at::TensorIteratorBase& iter) {
  pointwise(iter, "silu_backward_cpu", kFloatingTypes + kComplexTypes, [](auto tag) {
    using T = TypeOf<decltype(tag)>;
    return makeBlock<T, T, T>([](T grad, T a) ACCEL_INLINE {
      const T s = sigmoid(a);
      return grad * s * (T(1) + a * (T(1) - s));
    });
  });
}

template <class T>
inline constexpr T kTanhScale = std::numbers::sqrt2_v<T>* std::numbers::inv_sqrtpi_v<T>;
template <class T>
inline constexpr T kTanhCubic = T(0.044715);

void geluKernel(at::TensorIteratorBase& iter, at::native::GeluType approximate) {
  pointwise(iter, "GeluKernelImpl", kFloatingTypes, [&](auto tag) {
    using T = TypeOf<decltype(tag)>;
    if (approximate == at::native::GeluType::Tanh) {
      return makeBlock<T, T>([](T a) ACCEL_INLINE {
        const T inner = kTanhScale<T> * (a + kTanhCubic<T> * a * a * a);
        return T(0.5) * a * (T(1) + vmath::tanh(inner));
      });
    }
    // erfc keeps relative precision where 1 + erf cancels.
    return makeBlock<T, T>(
        [](T a) ACCEL_INLINE { return T(0.5) * a * vmath::erfc(-a / std::numbers::sqrt2_v<T>); });
  });
}

void geluBackwardKernel(at::TensorIteratorBase& iter, at::native::GeluType approximate) {
  pointwise(iter, "GeluBackwardKernelImpl", kFloatingTypes, [&](auto tag) {
    using T = TypeOf<decltype(tag)>;
    if (approximate == at::native::GeluType::Tanh) {
      return makeBlock<T, T, T>([](T grad, T a) ACCEL_INLINE {
        const T square = a * a;
        const T t = vmath::tanh(kTanhScale<T> * a * (T(1) + kTanhCubic<T> * square));
        const T slope = kTanhScale<T> * (T(1) + T(3) * kTanhCubic<T> * square);
        return grad * T(0.5) * ((T(1) + t) + a * (T(1) - t * t) * slope);
      });
    }
    return makeBlock<T, T, T>([](T grad, T a) ACCEL_INLINE {
      constexpr T kDensity = std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
      const T cdf = T(0.5) * vmath::erfc(-a / std::numbers::sqrt2_v<T>);
      const T pdf = kDensity * vmath::exp(T(-0.5) * a * a);
      return grad * (cdf + a * pdf);
    });
  });
}

void leakyReluKernel(at::TensorIteratorBase& iter, const at::Scalar& slope) {
  pointwise(iter, "leaky_relu_cpu", kFloatingTypes, [&](auto tag) {
    using T = TypeOf<decltype(tag)>;
    return makeBlock<T, T>([slope = slope.to<T>()](T a)
                               ACCEL_INLINE { return a > T(0) ? a : a * slope; });
  });
}

void leakyReluBackwardKernel(at::TensorIteratorBase& iter, const at::Scalar& slope) {
  pointwise(iter, "leaky_relu_backward_cpu", kFloatingTypes, [&](auto tag) {
    using T = TypeOf<decltype(tag)>;
    return makeBlock<T, T, T>([slope = slope.to<T>()](T a, T grad)
                                  ACCEL_INLINE { return a > T(0) ? grad : grad * slope; });
  });
}

template <class T>
ACCEL_INLINE inline T conjugate(T a) {
  if constexpr (isComplex<T>) {
    return T(a.real(), -a.imag());
  } else {
    return a;
  }
}

void sigmoidBackwardKernel(at::TensorIteratorBase& iter) {
  pointwise(iter, "sigmoid_backward_cpu", kFloatingTypes + kComplexTypes, [](auto tag) {
    using T = TypeOf<decltype(tag)>;
    return makeBlock<T, T, T>([](T grad, T y)
                                  ACCEL_INLINE { return grad * conjugate((T(1) - y) * y); });
  });
}

void tanhBackwardKernel(at::TensorIteratorBase& iter) {
  pointwise(iter, "tanh_backward_cpu", kFloatingTypes + kComplexTypes, [](auto tag) {
    using T = TypeOf<decltype(tag)>;
    return makeBlock<T, T, T>([](T grad, T y)
                                  ACCEL_INLINE { return grad * conjugate(T(1) - y * y); });
  });
}

void clampScalarKernel(at::TensorIteratorBase& iter, const at::Scalar& low,
                       const at::Scalar& high) {
  pointwise(iter, "clamp_scalar_cpu", kReal, [&](auto tag) {
    using T = TypeOf<decltype(tag)>;
    return makeBlock<T, T>([low = low.to<T>(), high = high.to<T>()](T a) ACCEL_INLINE {
      return numeric::minimum(numeric::maximum(a, low), high);
    });
  });
}

void clampMinScalarKernel(at::TensorIteratorBase& iter, at::Scalar low) {
  pointwise(iter, "clamp_min_scalar_cpu", kReal, [&](auto tag) {
    using T = TypeOf<decltype(tag)>;
    return makeBlock<T, T>([low = low.to<T>()](T a)
                               ACCEL_INLINE { return numeric::maximum(a, low); });
  });
}

void clampMaxScalarKernel(at::TensorIteratorBase& iter, at::Scalar high) {
  pointwise(iter, "clamp_max_scalar_cpu", kReal, [&](auto tag) {
    using T = TypeOf<decltype(tag)>;
    return makeBlock<T, T>([high = high.to<T>()](T a)
                               ACCEL_INLINE { return numeric::minimum(a, high); });
  });
}

void clampKernel(at::TensorIteratorBase& iter) {
  pointwise(iter, "clamp_cpu", kReal, [](auto tag) {
    using T = TypeOf<decltype(tag)>;
    return makeBlock<T, T, T, T>([](T a, T low, T high) ACCEL_INLINE {
      return numeric::minimum(numeric::maximum(a, low), high);
    });
  });
}

}  // namespace

void GeluOut::impl(const at::Tensor&, std::string_view approximate, const at::Tensor&) {
  geluKernel(*this, at::native::get_gelutype_enum(approximate));
}

void GeluBackwardOut::impl(const at::Tensor&, const at::Tensor&, std::string_view approximate,
                           const at::Tensor&) {
  geluBackwardKernel(*this, at::native::get_gelutype_enum(approximate));
}

}  // namespace torch_accel

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(threshold_stub, &torch_accel::thresholdKernel)
REGISTER_PRIVATEUSE1_DISPATCH(silu_stub, &torch_accel::siluKernel)
REGISTER_PRIVATEUSE1_DISPATCH(silu_backward_stub, &torch_accel::siluBackwardKernel)
REGISTER_PRIVATEUSE1_DISPATCH(leaky_relu_stub, &torch_accel::leakyReluKernel)
REGISTER_PRIVATEUSE1_DISPATCH(leaky_relu_backward_stub, &torch_accel::leakyReluBackwardKernel)
REGISTER_PRIVATEUSE1_DISPATCH(sigmoid_backward_stub, &torch_accel::sigmoidBackwardKernel)
REGISTER_PRIVATEUSE1_DISPATCH(tanh_backward_stub, &torch_accel::tanhBackwardKernel)
REGISTER_PRIVATEUSE1_DISPATCH(clamp_scalar_stub, &torch_accel::clampScalarKernel)
REGISTER_PRIVATEUSE1_DISPATCH(clamp_min_scalar_stub, &torch_accel::clampMinScalarKernel)
REGISTER_PRIVATEUSE1_DISPATCH(clamp_max_scalar_stub, &torch_accel::clampMaxScalarKernel)
REGISTER_PRIVATEUSE1_DISPATCH(clamp_stub, &torch_accel::clampKernel)

}  // namespace at::native
