// One copy loop per element size and one conversion loop per pair of types.
#include "aten/native/Vectorize.h"
//
#include <c10/util/TypeCast.h>
#include <c10/util/complex.h>

#ifdef ACCEL_X86
#include <immintrin.h>
#endif

#include "aten/native/Convert.h"
#include "aten/native/Types.h"

namespace torch_accel {
namespace {

template <class T>
ACCEL_VECTORIZE void copyRectangle(char* target, Strides2d to, const char* source, Strides2d from,
                                   Rectangle size) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  for (int64_t row = 0; row < size.rows; ++row, target += to.row, source += from.row) {
    auto* out = reinterpret_cast<T*>(target);
    const auto* in = reinterpret_cast<const T*>(source);
    if (to.column == kSize && from.column == kSize) {
#pragma GCC ivdep
      for (int64_t i = 0; i < size.columns; ++i) out[i] = in[i];
    } else if (to.column == kSize && from.column == 0) {
      const T value = *in;
      for (int64_t i = 0; i < size.columns; ++i) out[i] = value;
    } else {
      const int64_t out_step = to.column / kSize, in_step = from.column / kSize;
#pragma GCC ivdep
      for (int64_t i = 0; i < size.columns; ++i) out[i * out_step] = in[i * in_step];
    }
  }
}

struct alignas(8) Bytes16 {
  uint64_t low, high;
};

template <class To, class From>
void convertPacked(char* target, const char* source, int64_t count) {
  auto* out = reinterpret_cast<To*>(target);
  const auto* in = reinterpret_cast<const From*>(source);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = c10::convert<To, From>(in[i]);
}

// The conversions to and from 16-bit floats are on the path of every half-precision operator.
template <class To, class From>
ACCEL_VECTORIZE void convertHalf(char* target, const char* source, int64_t count) {
  auto* out = reinterpret_cast<To*>(target);
  const auto* in = reinterpret_cast<const From*>(source);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<To>(in[i]);
}

#ifdef ACCEL_X86
// The processor's own conversions of float16, eight at a time.
__attribute__((target("arch=x86-64-v3"))) void halfToFloat(char* target, const char* source,
                                                           int64_t count) {
  auto* out = reinterpret_cast<float*>(target);
  const auto* in = reinterpret_cast<const c10::Half*>(source);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(halves));
  }
  for (; i < count; ++i) out[i] = static_cast<float>(in[i]);
}

__attribute__((target("arch=x86-64-v3"))) void floatToHalf(char* target, const char* source,
                                                           int64_t count) {
  auto* out = reinterpret_cast<c10::Half*>(target);
  const auto* in = reinterpret_cast<const float*>(source);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 floats = _mm256_loadu_ps(in + i);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < count; ++i) out[i] = static_cast<c10::Half>(in[i]);
}

ConvertFn processorConversion(c10::ScalarType target, c10::ScalarType source) {
  using c10::ScalarType;
  static const bool available = __builtin_cpu_supports("x86-64-v3");
  if (!available) return nullptr;
  if (target == ScalarType::Float && source == ScalarType::Half) return &halfToFloat;
  if (target == ScalarType::Half && source == ScalarType::Float) return &floatToHalf;
  return nullptr;
}
#endif

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>;

template <class To, class From>
constexpr ConvertFn pairFunction() {
  if constexpr (std::is_same_v<To, From>) {
    return nullptr;
  } else if constexpr ((kIsHalf<To> && std::is_same_v<From, float>) ||
                       (kIsHalf<From> && std::is_same_v<To, float>)) {
    return &convertHalf<To, From>;
  } else if constexpr (std::is_same_v<To, ComputeType<To>> ||
                       std::is_same_v<From, ComputeType<From>>) {
    return &convertPacked<To, From>;
  } else {
    return nullptr;
  }
}

constexpr auto kConvertible = kBoolType + kIntegerTypes + kWideUnsignedTypes + kFloatingTypes +
                              kComplexTypes + kComplexHalfType;

template <class To, class... From>
ConvertFn pickSource(c10::ScalarType source, TypeList<From...>) {
  ConvertFn fn = nullptr;
  ((source == dtypeOf<From> ? void(fn = pairFunction<To, From>()) : void()), ...);
  return fn;
}

template <class... To>
ConvertFn pickTarget(c10::ScalarType target, c10::ScalarType source, TypeList<To...>) {
  ConvertFn fn = nullptr;
  ((target == dtypeOf<To> ? void(fn = pickSource<To>(source, kConvertible)) : void()), ...);
  return fn;
}

template <class Half>
ACCEL_VECTORIZE void roundValues(float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(static_cast<Half>(values[i]));
  }
}

}  // namespace

CopyFn copyFunction(size_t element_size) {
  switch (element_size) {
    case 1:
      return &copyRectangle<uint8_t>;
    case 2:
      return &copyRectangle<uint16_t>;
    case 4:
      return &copyRectangle<uint32_t>;
    case 8:
      return &copyRectangle<uint64_t>;
    case 16:
      return &copyRectangle<Bytes16>;
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, "no kernel copies elements of ", element_size, " bytes");
  }
}

ConvertFn convertFunction(c10::ScalarType target, c10::ScalarType source) {
#ifdef ACCEL_X86
  if (const ConvertFn fn = processorConversion(target, source)) return fn;
#endif
  return pickTarget(target, source, kConvertible);
}

void roundTo(c10::ScalarType dtype, char* values, int64_t count) {
  auto* floats = reinterpret_cast<float*>(values);
  if (dtype == c10::ScalarType::Half) {
    roundValues<c10::Half>(floats, count);
  } else if (dtype == c10::ScalarType::BFloat16) {
    roundValues<c10::BFloat16>(floats, count);
  } else if (dtype == c10::ScalarType::ComplexHalf) {
    roundValues<c10::Half>(floats, 2 * count);
  }
}

}  // namespace torch_accel
