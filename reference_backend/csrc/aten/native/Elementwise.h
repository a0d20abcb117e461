// Elementwise kernels: how a TensorIterator becomes a launch, and the loops that run it.
//
// An operator supplies one loop over packed values of its compute type (a Block, made from a
// lambda); everything else is common to all operators and knows types only by their dtype:
// broadcasting, strides, conversions between the operands' dtypes and the compute type, host
// scalars, and the division of large work between threads.
//
// A vendor replaces: runElementwise(), by a launch of their elementwise kernel template.
#pragma once

#include <ATen/TensorIterator.h>

#include <array>
#include <cstring>
#include <new>

#include "aten/native/Types.h"

namespace torch_accel {

inline constexpr int kMaxInputs = 4;

// A loop over packed values together with the operator's parameters: plain data, copied into the
// launch. Types are compute dtypes.
struct Block {
  using Fn = void (*)(const void* op, char* out, const char* const* in, int64_t count);

  Fn fn = nullptr;
  c10::ScalarType out_type = c10::ScalarType::Undefined;
  std::array<c10::ScalarType, kMaxInputs> in_types{};
  int inputs = 0;
  alignas(16) std::array<char, 64> op;
};

namespace detail {

template <class Op, class R, class... Ins, size_t... I>
ACCEL_INLINE inline void blockLoop(const Op& op, R* out, const char* const* in, int64_t count,
                                   std::index_sequence<I...>) {
  std::tuple<const Ins*...> sources{reinterpret_cast<const Ins*>(in[I])...};
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = op(std::get<I>(sources)[i]...);
}

template <class Op, class R, class... Ins>
ACCEL_VECTORIZE void runBlock(const void* op, char* out, const char* const* in, int64_t count) {
  const Op local = *static_cast<const Op*>(op);
  blockLoop<Op, R, Ins...>(local, reinterpret_cast<R*>(out), in, count,
                           std::index_sequence_for<Ins...>());
}

}  // namespace detail

// A block computing `R out = op(Ins...)` elementwise. `op` is a small lambda of trivially copyable
// state.
template <class R, class... Ins, class Op>
Block makeBlock(const Op& op) {
  static_assert(std::is_trivially_copyable_v<Op> && sizeof(Op) <= 64);
  static_assert(sizeof...(Ins) <= kMaxInputs);
  Block block;
  block.fn = &detail::runBlock<Op, R, Ins...>;
  block.out_type = dtypeOf<R>;
  block.inputs = sizeof...(Ins);
  block.in_types = {dtypeOf<Ins>...};
  new (block.op.data()) Op(op);
  return block;
}

// How inputs reach the compute type.
enum class Precision {
  // A host scalar is used in compute precision, as CPU and CUDA do in arithmetic: half * 0.1 takes
  // 0.1f, not the half nearest to it.
  kComputeScalars,
  // Every input is first rounded to the common dtype: what comparisons need.
  kCommonDtype,
};

// Queues `block` for the iterator's only output and its inputs, on the current stream of their
// device.
void elementwise(at::TensorIteratorBase& iter, const char* name, const Block& block,
                 Precision precision = Precision::kComputeScalars);

}  // namespace torch_accel
