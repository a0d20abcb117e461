// Blocked matrix product: panels of both factors are packed into the cache in the compute type, and
// a small tile of the result is kept in registers while a panel's depth is summed.
#include "aten/native/Vectorize.h"
//
#include "aten/native/Gemm.h"

#include <ATen/Parallel.h>
#include <c10/util/complex.h>

#include <cstring>
#include <memory>

#include "aten/native/Lanes.h"
#include "aten/native/Types.h"

namespace torch_accel {
namespace {

// ---- arithmetic
// ----------------------------------------------------------------------------------

// What products of T are summed in. Integers wrap around, which unsigned types do by definition.
template <class T>
struct SumTypeOf {
  using type = std::conditional_t<std::is_integral_v<T>,
                                  std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>, T>;
};
template <>
struct SumTypeOf<c10::Half> {
  using type = float;
};
template <>
struct SumTypeOf<c10::BFloat16> {
  using type = float;
};
// Complex products are four real ones: see Part.
template <class R>
struct SumTypeOf<c10::complex<R>> {
  using type = R;
};
template <class T>
using SumType = typename SumTypeOf<T>::type;

// Which part of a complex number a packed panel holds.
enum class Part { kReal, kImag };

template <class T>
ACCEL_INLINE inline SumType<T> partOf(const T& value, Part part) {
  if constexpr (isComplex<T>) {
    return part == Part::kReal ? value.real() : value.imag();
  } else {
    return static_cast<SumType<T>>(value);
  }
}

template <class T>
auto factorAs(const Factor& factor) {
  if constexpr (isComplex<T>) {
    using R = typename T::value_type;
    return T(static_cast<R>(factor.real), static_cast<R>(factor.imag));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<SumType<T>>(factor.integer);
  } else {
    return static_cast<SumType<T>>(factor.real);
  }
}

// ---- blocking
// ------------------------------------------------------------------------------------

constexpr int64_t kTileRows = 6;
constexpr int64_t kTileBytes = 128;  // columns of a register tile: 32 floats, 16 doubles
constexpr int64_t kDepth = 256;      // of a panel
constexpr int64_t kPanelRows = 96;   // of `a` packed at a time: 96 KiB of floats
constexpr int64_t kPanelColumns = 1024;

template <class S>
constexpr int64_t kTileColumns = kTileBytes / static_cast<int64_t>(sizeof(S));

// Rows (or columns) of a factor, `tile` at a time, each tile depth by depth; the last tile is
// padded with zeros.
template <class T>
ACCEL_VECTORIZE void pack(const T* source, int64_t stride, int64_t depth_stride, int64_t count,
                          int64_t depth, int64_t tile, Part part, SumType<T>* packed) {
  for (int64_t first = 0; first < count; first += tile) {
    const int64_t width = std::min(tile, count - first);
    const T* start = source + first * stride;
    if (width == tile && stride == 1) {
      for (int64_t p = 0; p < depth; ++p) {
        for (int64_t i = 0; i < tile; ++i) {
          packed[p * tile + i] = partOf(start[p * depth_stride + i], part);
        }
      }
    } else {
      for (int64_t i = 0; i < tile; ++i) {
        for (int64_t p = 0; p < depth; ++p) {
          packed[p * tile + i] =
              i < width ? partOf(start[i * stride + p * depth_stride], part) : SumType<T>(0);
        }
      }
    }
    packed += tile * depth;
  }
}

// One register tile: sums over `depth` of a column of `a`, of any strides, times a row of packed
// `b`.
template <class S>
ACCEL_VECTORIZE_WIDE void multiplyTile(const S* a, int64_t row_stride, int64_t depth_stride,
                                       const S* b, int64_t depth, S* tile) {
  typedef S Vector __attribute__((vector_size(64)));
  constexpr int64_t kWidth = 64 / static_cast<int64_t>(sizeof(S));
  constexpr int kVectors = kTileBytes / 64;
  Vector sum[kTileRows][kVectors] = {};
  for (int64_t p = 0; p < depth; ++p) {
    Vector row[kVectors];
    for (int v = 0; v < kVectors; ++v) std::memcpy(&row[v], b + v * kWidth, sizeof(Vector));
    for (int64_t i = 0; i < kTileRows; ++i) {
      for (int v = 0; v < kVectors; ++v) sum[i][v] += a[i * row_stride] * row[v];
    }
    a += depth_stride;
    b += kTileColumns<S>;
  }
  std::memcpy(tile, sum, sizeof(sum));
}

// A matrix of sums: the output itself if its type is the sums', else a buffer.
template <class S>
struct Sums {
  S* data;
  int64_t row_stride, column_stride;
};

// sums += factor * a @ b for a few rows of `a`, part by part of its depth, and a packed panel of
// `b`.
template <class T>
void multiplyBlock(const T* a, Matrix am, Part part, int64_t m, int64_t depth,
                   const SumType<T>* b_panel, int64_t n, SumType<T> factor, Sums<SumType<T>> sums) {
  using S = SumType<T>;
  constexpr int64_t kColumns = kTileColumns<S>;
  alignas(64) S packed[kPanelRows * kDepth];
  alignas(64) S tile[kTileRows * kColumns];
  // Rows that lie depth by depth, in the sums' type, are read where they are; but for the last few,
  // which a tile would overrun.
  const bool direct = !isComplex<T> && sizeof(T) == sizeof(S) && am.column_stride == 1;
  const int64_t in_place = direct ? m / kTileRows * kTileRows : 0;
  pack<T>(a + in_place * am.row_stride, am.row_stride, am.column_stride, m - in_place, depth,
          kTileRows, part, packed);
  for (int64_t j = 0; j < n; j += kColumns) {
    const S* b_tile = b_panel + j * depth;
    for (int64_t i = 0; i < m; i += kTileRows) {
      if (i < in_place) {
        multiplyTile<S>(reinterpret_cast<const S*>(a) + i * am.row_stride, am.row_stride, 1, b_tile,
                        depth, tile);
      } else {
        multiplyTile<S>(packed + (i - in_place) * depth, 1, kTileRows, b_tile, depth, tile);
      }
      S* target = sums.data + i * sums.row_stride + j * sums.column_stride;
      const int64_t rows = std::min(kTileRows, m - i), width = std::min(kColumns, n - j);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < width; ++c) {
          target[r * sums.row_stride + c * sums.column_stride] += factor * tile[r * kColumns + c];
        }
      }
    }
  }
}

// sums += factor * a @ b for one pair of parts.
template <class T>
void accumulate(const GemmShape& shape, const T* a, Matrix am, Part a_part, const T* b, Matrix bm,
                Part b_part, SumType<T> factor, Sums<SumType<T>> sums) {
  using S = SumType<T>;
  constexpr int64_t kColumns = kTileColumns<S>;
  const int64_t columns = std::min(shape.n, kPanelColumns);
  const int64_t padded = (columns + kColumns - 1) / kColumns * kColumns;
  std::unique_ptr<S[]> b_panel(new S[padded * std::min(kDepth, shape.k)]);
  for (int64_t column = 0; column < shape.n; column += kPanelColumns) {
    const int64_t n = std::min(kPanelColumns, shape.n - column);
    for (int64_t p = 0; p < shape.k; p += kDepth) {
      const int64_t depth = std::min(kDepth, shape.k - p);
      pack<T>(b + p * bm.row_stride + column * bm.column_stride, bm.column_stride, bm.row_stride, n,
              depth, kColumns, b_part, b_panel.get());
      const int64_t blocks = (shape.m + kPanelRows - 1) / kPanelRows;
      const int64_t work = std::min(kPanelRows, shape.m) * n * depth;
      const int64_t grain = std::max<int64_t>(1, (1 << 18) / work);
      at::parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin * kPanelRows; row < std::min(shape.m, end * kPanelRows);
             row += kPanelRows) {
          const Sums<S> target{sums.data + row * sums.row_stride + column * sums.column_stride,
                               sums.row_stride, sums.column_stride};
          multiplyBlock<T>(a + row * am.row_stride + p * am.column_stride, am, a_part,
                           std::min(kPanelRows, shape.m - row), depth, b_panel.get(), n, factor,
                           target);
        }
      });
    }
  }
}

template <class T>
const T* typed(Matrix matrix) {
  return reinterpret_cast<const T*>(matrix.data);
}

// beta * self, or 0.
template <class T, class Factor>
ACCEL_INLINE inline auto scaledSelf(bool read, const Factor& beta, const T& value) {
  if constexpr (isComplex<T>) {
    return read ? beta * value : T(0);
  } else {
    return read ? beta * static_cast<SumType<T>>(value) : SumType<T>(0);
  }
}

template <class T>
void gemm(const GemmShape& shape, Matrix a, Matrix b, Matrix self, Matrix out, const Factor& alpha,
          const Factor& beta) {
  using S = SumType<T>;
  const auto typed_alpha = factorAs<T>(alpha), typed_beta = factorAs<T>(beta);
  const bool read_self = !beta.isZero(dtypeOf<T>);
  auto* result = reinterpret_cast<T*>(out.data);
  const auto each = [&](auto f) {
    for (int64_t i = 0; i < shape.m; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) {
        f(i * self.row_stride + j * self.column_stride, i * out.row_stride + j * out.column_stride,
          i * shape.n + j);
      }
    }
  };
  if constexpr (isComplex<T>) {
    std::unique_ptr<S[]> real(new S[shape.m * shape.n]()), imag(new S[shape.m * shape.n]());
    const Sums<S> reals{real.get(), shape.n, 1}, imags{imag.get(), shape.n, 1};
    const T *x = typed<T>(a), *y = typed<T>(b);
    accumulate<T>(shape, x, a, Part::kReal, y, b, Part::kReal, S(1), reals);
    accumulate<T>(shape, x, a, Part::kImag, y, b, Part::kImag, S(-1), reals);
    accumulate<T>(shape, x, a, Part::kReal, y, b, Part::kImag, S(1), imags);
    accumulate<T>(shape, x, a, Part::kImag, y, b, Part::kReal, S(1), imags);
    each([&](int64_t from, int64_t to, int64_t sum) {
      const T value = scaledSelf<T>(read_self, typed_beta, read_self ? typed<T>(self)[from] : T(0));
      result[to] = value + typed_alpha * T(real[sum], imag[sum]);
    });
  } else if constexpr (sizeof(T) == sizeof(S)) {
    each([&](int64_t from, int64_t to, int64_t) {
      result[to] = static_cast<T>(
          scaledSelf<T>(read_self, typed_beta, read_self ? typed<T>(self)[from] : T(0)));
    });
    accumulate<T>(shape, typed<T>(a), a, Part::kReal, typed<T>(b), b, Part::kReal, typed_alpha,
                  Sums<S>{reinterpret_cast<S*>(result), out.row_stride, out.column_stride});
  } else {
    std::unique_ptr<S[]> sums(new S[shape.m * shape.n]());
    accumulate<T>(shape, typed<T>(a), a, Part::kReal, typed<T>(b), b, Part::kReal, S(1),
                  Sums<S>{sums.get(), shape.n, 1});
    each([&](int64_t from, int64_t to, int64_t sum) {
      const S value = scaledSelf<T>(read_self, typed_beta, read_self ? typed<T>(self)[from] : T(0));
      result[to] = static_cast<T>(value + typed_alpha * sums[sum]);
    });
  }
}

// ---- matrix times vector
// -------------------------------------------------------------------------

template <class T>
using VectorSum = std::conditional_t<isComplex<T>, T, SumType<T>>;

template <class T>
ACCEL_VECTORIZE VectorSum<T> dotProduct(const T* a, int64_t stride, const VectorSum<T>* x,
                                        int64_t count) {
  using V = VectorSum<T>;
  V sum(0);
  for (int64_t p = 0; p < count; p += 512) {
    const int64_t part = std::min<int64_t>(512, count - p);
    V products[512];
    if (stride == 1) {
      for (int64_t i = 0; i < part; ++i) products[i] = static_cast<V>(a[p + i]) * x[p + i];
    } else {
      for (int64_t i = 0; i < part; ++i)
        products[i] = static_cast<V>(a[(p + i) * stride]) * x[p + i];
    }
    if constexpr (isComplex<T>) {
      V sums[2] = {};
      for (int64_t i = 0; i < part; ++i) sums[i % 2] += products[i];
      sum += sums[0] + sums[1];
    } else {
      sum += sumOf<V>(products, part);
    }
  }
  return sum;
}

template <class T>
ACCEL_VECTORIZE void addColumn(const T* a, int64_t stride, VectorSum<T> x, int64_t count,
                               VectorSum<T>* sums) {
  using V = VectorSum<T>;
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) sums[i] += static_cast<V>(a[i]) * x;
  } else {
    for (int64_t i = 0; i < count; ++i) sums[i] += static_cast<V>(a[i * stride]) * x;
  }
}

// The product with a matrix `b` of one column.
template <class T>
void gemv(const GemmShape& shape, Matrix a, Matrix b, Matrix self, Matrix out, const Factor& alpha,
          const Factor& beta) {
  using V = VectorSum<T>;
  constexpr int64_t kStrip = 256;
  const auto typed_alpha = factorAs<T>(alpha), typed_beta = factorAs<T>(beta);
  const bool read_self = !beta.isZero(dtypeOf<T>);
  // The vector is used once per row: packed, unless it is already.
  const V* x = reinterpret_cast<const V*>(b.data);
  std::unique_ptr<V[]> packed;
  if (!std::is_same_v<T, V> || (b.row_stride != 1 && shape.k > 1)) {
    packed.reset(new V[shape.k]);
    for (int64_t p = 0; p < shape.k; ++p) packed[p] = static_cast<V>(typed<T>(b)[p * b.row_stride]);
    x = packed.get();
  }
  const int64_t strips = (shape.m + kStrip - 1) / kStrip;
  const int64_t work = std::max<int64_t>(1, std::min(kStrip, shape.m) * shape.k);
  at::parallel_for(
      0, strips, std::max<int64_t>(1, (1 << 16) / work), [&](int64_t begin, int64_t end) {
        for (int64_t strip = begin; strip < end; ++strip) {
          const int64_t first = strip * kStrip, count = std::min(kStrip, shape.m - first);
          const T* rows = typed<T>(a) + first * a.row_stride;
          V sums[kStrip] = {};
          if (std::abs(a.column_stride) <= std::abs(a.row_stride)) {
            for (int64_t i = 0; i < count; ++i) {
              sums[i] = dotProduct<T>(rows + i * a.row_stride, a.column_stride, x, shape.k);
            }
          } else {
            for (int64_t p = 0; p < shape.k; ++p) {
              addColumn<T>(rows + p * a.column_stride, a.row_stride, x[p], count, sums);
            }
          }
          for (int64_t i = 0; i < count; ++i) {
            const T old = read_self ? typed<T>(self)[(first + i) * self.row_stride] : T(0);
            reinterpret_cast<T*>(out.data)[(first + i) * out.row_stride] =
                static_cast<T>(scaledSelf<T>(read_self, typed_beta, old) + typed_alpha * sums[i]);
          }
        }
      });
}

// Turns the product so that the output's rows are long and near: (a @ b).T is b.T @ a.T.
template <class T>
void orientedGemm(const GemmShape& shape, Matrix a, Matrix b, Matrix self, Matrix out,
                  const Factor& alpha, const Factor& beta) {
  const auto transposed = [](Matrix m) { return Matrix{m.data, m.column_stride, m.row_stride}; };
  const GemmShape turned{shape.n, shape.m, shape.k};
  if (shape.n == 1) {
    gemv<T>(shape, a, b, self, out, alpha, beta);
  } else if (shape.m == 1) {
    gemv<T>(turned, transposed(b), transposed(a), transposed(self), transposed(out), alpha, beta);
  } else if (std::abs(out.row_stride) < std::abs(out.column_stride)) {
    gemm<T>(turned, transposed(b), transposed(a), transposed(self), transposed(out), alpha, beta);
  } else {
    gemm<T>(shape, a, b, self, out, alpha, beta);
  }
}

}  // namespace

Factor Factor::of(const c10::Scalar& value, c10::ScalarType dtype) {
  Factor factor;
  if (c10::isIntegralType(dtype, /*includeBool=*/true)) {
    factor.integer = value.to<int64_t>();
  } else if (c10::isComplexType(dtype)) {
    const auto z = value.to<c10::complex<double>>();
    factor.real = z.real();
    factor.imag = z.imag();
  } else {
    factor.real = value.to<double>();
  }
  return factor;
}

bool Factor::isZero(c10::ScalarType dtype) const {
  return c10::isIntegralType(dtype, /*includeBool=*/true) ? integer == 0 : real == 0 && imag == 0;
}

GemmFn gemmFunction(c10::ScalarType dtype, const char* name) {
  GemmFn fn = nullptr;
  const auto pick = [&]<class... Ts>(TypeList<Ts...>) {
    ((dtype == dtypeOf<Ts> ? void(fn = &orientedGemm<Ts>) : void()), ...);
  };
  pick(kIntegerTypes + kFloatingTypes + kComplexTypes);
  TORCH_CHECK_NOT_IMPLEMENTED(fn, '"', name, "\" not implemented for '", c10::toString(dtype), "'");
  return fn;
}

}  // namespace torch_accel
