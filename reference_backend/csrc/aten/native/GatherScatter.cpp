// gather, scatter and scatter_add along a dimension.
#include <ATen/Parallel.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/gather_meta.h>
#include <ATen/ops/scatter_add_meta.h>
#include <ATen/ops/scatter_meta.h>
#include <torch/library.h>

#include "aten/native/Numeric.h"
#include "aten/native/Slices.h"
#include "aten/native/Structured.h"
#include "runtime/Launch.h"
#include "runtime/Stream.h"

namespace torch_accel {
namespace {

// One dimension of the index tensor, with the strides (in elements) of all that follow it: the
// index, the elementwise operand and the indexed operand (0 for the indexed dimension itself).
struct Dimension {
  int64_t size, index_stride, element_stride, indexed_stride;
};

// For each element of the index: a visit of its place in the elementwise operand (gather's output,
// scatter's source) and the place in the indexed operand that the index names.
struct IndexedWalk {
  const void* index = nullptr;
  bool wide = true;                               // int64, else int32
  int64_t dim = 0, dim_size = 0, dim_stride = 0;  // of the indexed operand
  c10::SmallVector<Dimension, 5> dims;            // the innermost first, never empty

  int64_t rows() const {
    int64_t n = 1;
    for (size_t i = 1; i < dims.size(); ++i) n *= dims[i].size;
    return n;
  }

  // visit(element_offset, indexed_offset) for rows [begin, end).
  template <class Visit>
  void run(int64_t begin, int64_t end, Visit visit) const {
    if (wide) {
      runTyped(static_cast<const int64_t*>(kernelPointer(index)), begin, end, visit);
    } else {
      runTyped(static_cast<const int32_t*>(kernelPointer(index)), begin, end, visit);
    }
  }

 private:
  template <class Index, class Visit>
  void runTyped(const Index* positions, int64_t begin, int64_t end, Visit visit) const {
    const Dimension inner = dims[0];
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row, index_at = 0, element_at = 0, indexed_at = 0;
      for (size_t i = 1; i < dims.size(); ++i) {
        const int64_t at = rest % dims[i].size;
        rest /= dims[i].size;
        index_at += at * dims[i].index_stride;
        element_at += at * dims[i].element_stride;
        indexed_at += at * dims[i].indexed_stride;
      }
      for (int64_t i = 0; i < inner.size; ++i) {
        const int64_t position = positions[index_at + i * inner.index_stride];
        TORCH_CHECK(position >= 0 && position < dim_size, "index ", position,
                    " is out of bounds for dimension ", dim, " with size ", dim_size);
        visit(element_at + i * inner.element_stride,
              indexed_at + i * inner.indexed_stride + position * dim_stride);
      }
    }
  }
};

// `element` may be undefined: a scalar is scattered.
IndexedWalk walkOf(const at::Tensor& index, int64_t dim, const at::Tensor& element,
                   const at::Tensor& indexed) {
  IndexedWalk walk;
  walk.index = index.data_ptr();
  walk.wide = index.scalar_type() == at::kLong;
  walk.dim = at::maybe_wrap_dim(dim, indexed.dim());
  walk.dim_size = indexed.dim() ? indexed.size(walk.dim) : 1;
  walk.dim_stride = indexed.dim() ? indexed.stride(walk.dim) : 0;
  const auto stride = [](const at::Tensor& t, int64_t i) {
    return t.defined() && t.dim() ? t.stride(i) : 0;
  };
  for (int64_t i = index.dim() - 1; i >= 0; --i) {
    walk.dims.push_back({index.size(i), index.stride(i), stride(element, i),
                         i == walk.dim ? 0 : stride(indexed, i)});
  }
  if (walk.dims.empty()) walk.dims.push_back({1, 0, 0, 0});
  return walk;
}

struct alignas(8) Bytes16 {
  uint64_t low, high;
};

// Calls `f` with a value of a type that has the dtype's size.
template <class F>
void withUnit(size_t element_size, F f) {
  switch (element_size) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    case 8:
      return f(uint64_t());
    default:
      return f(Bytes16());
  }
}

c10::Stream streamOf(const at::Tensor& tensor) {
  return currentStream(tensor.device().index());
}

struct GatherOut : at::meta::structured_gather {
  void impl(const at::Tensor& self, int64_t dim, const at::Tensor& index, bool,
            const at::Tensor& out) {
    if (index.numel() == 0) return;
    withUnit(self.element_size(), [&](auto unit) {
      using Unit = decltype(unit);
      launch(streamOf(self), "gather",
             [walk = walkOf(index, dim, out, self), to = static_cast<Unit*>(out.data_ptr()),
              from = static_cast<const Unit*>(self.data_ptr())] {
               Unit* target = kernelPointer(to);
               const Unit* source = kernelPointer(from);
               const int64_t grain = std::max<int64_t>(1, kGrain / walk.dims[0].size);
               at::parallel_for(0, walk.rows(), grain, [&](int64_t begin, int64_t end) {
                 walk.run(begin, end, [&](int64_t element, int64_t indexed) {
                   target[element] = source[indexed];
                 });
               });
             });
    });
  }
};

// The output starts as a copy of self.
void start(const at::Tensor& self, const at::Tensor& out) {
  if (!out.is_same(self)) out.copy_(self);
}

// Elements are written in the order of the index, so that of several with one place the last stays.
struct ScatterSrcOut : at::meta::structured_scatter_src {
  void impl(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src,
            const at::Tensor& out) {
    start(self, out);
    if (index.numel() == 0) return;
    withUnit(self.element_size(), [&](auto unit) {
      using Unit = decltype(unit);
      launch(streamOf(self), "scatter",
             [walk = walkOf(index, dim, src, out), to = static_cast<Unit*>(out.data_ptr()),
              from = static_cast<const Unit*>(src.data_ptr())] {
               Unit* target = kernelPointer(to);
               const Unit* source = kernelPointer(from);
               walk.run(0, walk.rows(), [&](int64_t element, int64_t indexed) {
                 target[indexed] = source[element];
               });
             });
    });
  }
};

constexpr auto kTypes = kBoolType + kIntegerTypes + kWideUnsignedTypes + kFloatingTypes +
                        kComplexTypes + kComplexHalfType;

// Calls `f` with the tag of the dtype's own type; raises for a dtype without one.
template <class... Ts, class F>
void withType(c10::ScalarType dtype, const char* name, TypeList<Ts...>, F f) {
  const bool found = ((dtype == dtypeOf<Ts> && (f(TypeTag<Ts>()), true)) || ...);
  TORCH_CHECK_NOT_IMPLEMENTED(found, '"', name, "\" not implemented for '", c10::toString(dtype),
                              "'");
}

struct ScatterValueOut : at::meta::structured_scatter_value {
  void impl(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value,
            const at::Tensor& out) {
    start(self, out);
    if (index.numel() == 0) return;
    withType(self.scalar_type(), "scatter_fill_cpu", kTypes, [&](auto tag) {
      using T = typename decltype(tag)::type;
      launch(streamOf(self), "scatter",
             [walk = walkOf(index, dim, at::Tensor(), out), to = static_cast<T*>(out.data_ptr()),
              value = value.to<T>()] {
               T* target = kernelPointer(to);
               walk.run(0, walk.rows(), [&](int64_t, int64_t indexed) { target[indexed] = value; });
             });
    });
  }
};

struct ScatterAddOut : at::meta::structured_scatter_add {
  void impl(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src,
            const at::Tensor& out) {
    start(self, out);
    if (index.numel() == 0) return;
    withType(self.scalar_type(), "scatter_add_cpu", kTypes, [&](auto tag) {
      using T = typename decltype(tag)::type;
      launch(streamOf(self), "scatter_add",
             [walk = walkOf(index, dim, src, out), to = static_cast<T*>(out.data_ptr()),
              from = static_cast<const T*>(src.data_ptr())] {
               using C = ComputeType<T>;
               T* target = kernelPointer(to);
               const T* source = kernelPointer(from);
               walk.run(0, walk.rows(), [&](int64_t element, int64_t indexed) {
                 target[indexed] = static_cast<T>(numeric::add(static_cast<C>(target[indexed]),
                                                               static_cast<C>(source[element])));
               });
             });
    });
  }
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("gather", functional<GatherOut>);
  m.impl("gather.out", out<GatherOut>);
  m.impl("scatter.src", functional<ScatterSrcOut>);
  m.impl("scatter_.src", inplace<ScatterSrcOut>);
  m.impl("scatter.src_out", out<ScatterSrcOut>);
  m.impl("scatter.value", functional<ScatterValueOut>);
  m.impl("scatter_.value", inplace<ScatterValueOut>);
  m.impl("scatter.value_out", out<ScatterValueOut>);
  m.impl("scatter_add", functional<ScatterAddOut>);
  m.impl("scatter_add_", inplace<ScatterAddOut>);
  m.impl("scatter_add.out", out<ScatterAddOut>);
}

}  // namespace
}  // namespace torch_accel
