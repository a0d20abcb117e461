// sum, nansum, mean, prod, amax, amin, all, any.
//
// Floating-point sums and products are kept in double: packed runs of at most kBlockSize values are
// added in their own type, in many lanes, and the runs' sums in double.
#include "aten/native/Vectorize.h"
//
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/ReduceAllOps.h>
#include <ATen/native/ReduceOps.h>

#include "aten/native/Lanes.h"
#include "aten/native/Numeric.h"
#include "aten/native/Reduce.h"

namespace torch_accel {
namespace {

constexpr auto kReal = kIntegerTypes + kFloatingTypes + kBoolType;
constexpr auto kAll = kReal + kComplexTypes + kComplexHalfType;

template <class T>
struct WideState {
  using type = uint64_t;
};
template <>
struct WideState<float> {
  using type = double;
};
template <>
struct WideState<double> {
  using type = double;
};
template <class T>
struct WideState<c10::complex<T>> {
  using type = c10::complex<double>;
};

template <class Out, class State>
Out narrow(State state) {
  if constexpr (std::is_same_v<Out, bool>) {
    return state != State(0);
  } else {
    return static_cast<Out>(state);
  }
}

// Loops of a reduction that has step() and combine().
template <class Derived, class In_, class State_, class Out_ = In_>
struct ReductionBase {
  using In = In_;
  using State = State_;
  using Out = Out_;

  ACCEL_VECTORIZE static void outer(void* states, const char* in, int64_t count) {
    auto* s = static_cast<State*>(states);
    const auto* values = reinterpret_cast<const In*>(in);
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) s[i] = Derived::step(s[i], values[i]);
  }
  static State inner(const In* in, int64_t count) {
    State state = Derived::identity();
    for (int64_t i = 0; i < count; ++i) state = Derived::step(state, in[i]);
    return state;
  }
  static Out finish(State state, int64_t) {
    return narrow<Out>(state);
  }
};

template <class T, bool kMean = false>
struct Sum : ReductionBase<Sum<T, kMean>, T, typename WideState<T>::type> {
  using State = typename WideState<T>::type;
  static State identity() { return State(0); }
  ACCEL_INLINE static State step(State state, T value) { return state + State(value); }
  static State combine(State a, State b) { return a + b; }
  ACCEL_VECTORIZE static State inner(const T* in, int64_t count) {
    if constexpr (std::is_floating_point_v<T>) {
      return sumOf<State>(in, count);
    } else {
      State state(0);
      for (int64_t i = 0; i < count; ++i) state = step(state, in[i]);
      return state;
    }
  }
  static T finish(State state, int64_t reduced) {
    if constexpr (kMean) {
      return narrow<T>(state / static_cast<double>(reduced));
    } else {
      return narrow<T>(state);
    }
  }
};

template <class T>
struct NanSum : ReductionBase<NanSum<T>, T, typename WideState<T>::type> {
  using State = typename WideState<T>::type;
  static State identity() { return State(0); }
  ACCEL_INLINE static State step(State state, T value) {
    return numeric::isNan(value) ? state : state + State(value);
  }
  static State combine(State a, State b) { return a + b; }
};

template <class T>
struct Product : ReductionBase<Product<T>, T, typename WideState<T>::type> {
  using State = typename WideState<T>::type;
  static State identity() { return State(1); }
  ACCEL_INLINE static State step(State state, T value) { return numeric::mul(state, State(value)); }
  static State combine(State a, State b) { return numeric::mul(a, b); }
  // Products of neighbours are independent, or each would wait for the one before.
  ACCEL_VECTORIZE static State inner(const T* in, int64_t count) {
    constexpr int kLanes = 16;
    State lanes[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = State(1);
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = step(lanes[lane], in[i + lane]);
    }
    for (; i < count; ++i) lanes[0] = step(lanes[0], in[i]);
    for (int lane = 1; lane < kLanes; ++lane) lanes[0] = combine(lanes[0], lanes[lane]);
    return lanes[0];
  }
};

template <class T, bool kLargest>
struct Extremum : ReductionBase<Extremum<T, kLargest>, T, T> {
  static T identity() {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>) {
      return kLargest ? -Limits::infinity() : Limits::infinity();
    } else {
      return kLargest ? Limits::lowest() : Limits::max();
    }
  }
  ACCEL_INLINE static T step(T state, T value) {
    return kLargest ? numeric::maximum(state, value) : numeric::minimum(state, value);
  }
  static T combine(T a, T b) { return step(a, b); }
  ACCEL_VECTORIZE static T inner(const T* in, int64_t count) {
    if constexpr (std::is_same_v<T, bool>) {
      T state = identity();
      for (int64_t i = 0; i < count; ++i) state = step(state, in[i]);
      return state;
    } else {
      T lanes[4 * 32 / sizeof(T)];
      int lane_count;
      // (b > a) | (b != b) takes a NaN from b; one in a stays, since no b is greater.
      reduceLanes(in, count, lanes, lane_count, [](auto a, auto b) ACCEL_INLINE {
        return static_cast<decltype(a)>(((kLargest ? b > a : b < a) | (b != b)) ? b : a);
      });
      T state = identity();
      for (int i = 0; i < lane_count; ++i) state = step(state, lanes[i]);
      return state;
    }
  }
};

// All or any of the values are not 0. T is bool, or uint8 where torch says so.
template <class T, bool kAll>
struct Truth : ReductionBase<Truth<T, kAll>, T, bool, T> {
  static bool identity() { return kAll; }
  ACCEL_INLINE static bool step(bool state, T value) {
    return kAll ? (state & (value != T(0))) : (state | (value != T(0)));
  }
  static bool combine(bool a, bool b) { return kAll ? a && b : a || b; }
};

template <template <class> class Op, class Types>
void reduceTyped(at::TensorIterator& iter, const char* name, Types types) {
  reduce(iter, name, selectType(iter.dtype(1), name, types, [](auto tag) {
           return makeReduction<Op<typename decltype(tag)::type>>();
         }));
}

template <class T>
using PlainSum = Sum<T>;
template <class T>
using Mean = Sum<T, true>;
template <class T>
using Maximum = Extremum<T, true>;
template <class T>
using Minimum = Extremum<T, false>;
template <class T>
using All = Truth<T, true>;
template <class T>
using Any = Truth<T, false>;

constexpr TypeList<bool, uint8_t> kTruthTypes;

void sumKernel(at::TensorIterator& iter) {
  reduceTyped<PlainSum>(iter, "sum_cpu", kAll);
}
void nansumKernel(at::TensorIterator& iter) {
  reduceTyped<NanSum>(iter, "nansum_cpu", kReal);
}
void prodKernel(at::TensorIterator& iter) {
  reduceTyped<Product>(iter, "prod_cpu", kAll);
}
void meanKernel(at::TensorIterator& iter) {
  reduceTyped<Mean>(iter, "mean_cpu", kFloatingTypes + kComplexTypes);
}
void maxValuesKernel(at::TensorIterator& iter) {
  reduceTyped<Maximum>(iter, "max_values_cpu", kReal);
}
void minValuesKernel(at::TensorIterator& iter) {
  reduceTyped<Minimum>(iter, "min_values_cpu", kReal);
}
void allKernel(at::TensorIterator& iter) {
  reduceTyped<All>(iter, "and_cpu", kTruthTypes);
}
void anyKernel(at::TensorIterator& iter) {
  reduceTyped<Any>(iter, "or_cpu", kTruthTypes);
}

// max() and min() over all elements.
template <template <class> class Op>
void reduceAll(const char* name, const at::Tensor& result, const at::Tensor& self) {
  const at::DimVector ones(self.dim(), 1), zeros(self.dim(), 0);
  at::Tensor view = result.as_strided(ones, zeros);
  auto iter = at::TensorIterator::reduce_op(view, self);
  reduceTyped<Op>(iter, name, kReal);
}
void maxAllKernel(at::Tensor& result, const at::Tensor& self) {
  reduceAll<Maximum>("max_all", result, self);
}
void minAllKernel(at::Tensor& result, const at::Tensor& self) {
  reduceAll<Minimum>("min_all", result, self);
}

}  // namespace
}  // namespace torch_accel

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(sum_stub, &torch_accel::sumKernel)
REGISTER_PRIVATEUSE1_DISPATCH(nansum_stub, &torch_accel::nansumKernel)
REGISTER_PRIVATEUSE1_DISPATCH(prod_stub, &torch_accel::prodKernel)
REGISTER_PRIVATEUSE1_DISPATCH(mean_stub, &torch_accel::meanKernel)
REGISTER_PRIVATEUSE1_DISPATCH(max_values_stub, &torch_accel::maxValuesKernel)
REGISTER_PRIVATEUSE1_DISPATCH(min_values_stub, &torch_accel::minValuesKernel)
REGISTER_PRIVATEUSE1_DISPATCH(and_stub, &torch_accel::allKernel)
REGISTER_PRIVATEUSE1_DISPATCH(or_stub, &torch_accel::anyKernel)
REGISTER_PRIVATEUSE1_DISPATCH(max_all_stub, &torch_accel::maxAllKernel)
REGISTER_PRIVATEUSE1_DISPATCH(min_all_stub, &torch_accel::minAllKernel)

}  // namespace at::native
