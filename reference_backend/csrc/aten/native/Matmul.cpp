// Matrix products: checks that the shape functions leave to the backend, and the launch.
#include "aten/native/Matmul.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/Parallel.h>

#include "aten/native/Gemm.h"
#include "aten/native/Structured.h"
#include "runtime/Launch.h"
#include "runtime/Stream.h"

namespace torch_accel {
namespace {

// A batch of matrices on the device; strides in elements.
struct BatchedMatrix {
  void* address = nullptr;
  int64_t batch_stride = 0, row_stride = 0, column_stride = 0;

  Matrix at(int64_t batch, int64_t element_size) const {
    return {static_cast<char*>(kernelPointer(address)) + batch * batch_stride * element_size,
            row_stride, column_stride};
  }
};

// The last two dimensions are the matrix; a vector is a column.
BatchedMatrix describe(const at::Tensor& tensor) {
  BatchedMatrix m;
  m.address = tensor.data_ptr();
  const int64_t dims = tensor.dim();
  if (dims == 1) {
    m.row_stride = tensor.stride(0);
  } else if (dims >= 2) {
    m.row_stride = tensor.stride(dims - 2);
    m.column_stride = tensor.stride(dims - 1);
    if (dims == 3) m.batch_stride = tensor.stride(0);
  }
  return m;
}

struct MatmulLaunch {
  GemmFn gemm;
  GemmShape shape;
  int64_t batches, element_size;
  BatchedMatrix a, b, self, out;
  Factor alpha, beta;

  void operator()() const {
    at::parallel_for(0, batches, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        gemm(shape, a.at(i, element_size), b.at(i, element_size), self.at(i, element_size),
             out.at(i, element_size), alpha, beta);
      }
    });
  }
};

// Whether two tensors share memory, or might.
bool overlap(const at::Tensor& a, const at::Tensor& b) {
  return a.is_alias_of(b) && at::get_overlap_status(a, b) != at::MemOverlapStatus::No;
}

// Elements are read and written at the same places, or at unrelated ones.
bool overlapsOnlyInPlace(const at::Tensor& out, const at::Tensor& self) {
  return !overlap(out, self) ||
         (out.data_ptr() == self.data_ptr() && out.strides() == self.strides());
}

// out = beta * self + alpha * a @ b; self has the output's sizes and is not read when beta is 0.
void matmul(const char* name, const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
            const at::Scalar& beta, const at::Scalar& alpha, const at::Tensor& out) {
  const c10::ScalarType dtype = out.scalar_type();
  TORCH_CHECK(a.dtype() == b.dtype(),
              "expected m1 and m2 to have the same dtype, but got: ", a.dtype(), " != ", b.dtype());
  TORCH_CHECK(a.scalar_type() == dtype && self.scalar_type() == dtype,
              "expected self and out to have the dtype ", a.dtype(),
              " of m1 and m2, but got: ", self.dtype(), " and ", out.dtype());
  at::assert_no_internal_overlap(out);
  MatmulLaunch d;
  d.gemm = gemmFunction(dtype, name);
  if (out.numel() == 0) return;
  // PyTorch leaves lazily conjugated factors to the backend.
  if (a.is_conj() || b.is_conj() || self.is_conj()) {
    return matmul(name, self.resolve_conj(), a.resolve_conj(), b.resolve_conj(), beta, alpha, out);
  }
  // The product is written while the factors are still read.
  if (out.is_conj() || overlap(out, a) || overlap(out, b) || !overlapsOnlyInPlace(out, self)) {
    const at::Tensor result = newOutput(out.sizes(), {}, out.options());
    matmul(name, self, a, b, beta, alpha, result);
    out.copy_(result);
    return;
  }
  d.element_size = out.element_size();
  d.a = describe(a);
  d.b = describe(b);
  d.self = describe(self);
  d.out = describe(out);
  d.alpha = Factor::of(alpha, dtype);
  d.beta = Factor::of(beta, dtype);
  d.batches = a.dim() == 3 ? a.size(0) : 1;
  const int64_t dims = a.dim();
  d.shape.m = dims == 1 ? 1 : a.size(dims - 2);
  d.shape.k = a.size(dims - 1);
  d.shape.n = b.dim() == 1 ? 1 : b.size(b.dim() - 1);
  if (dims == 1) std::swap(d.a.row_stride, d.a.column_stride);
  launch(currentStream(out.device().index()), name, d);
}

void checkSameDevice(const char* op, const at::Tensor& first, const at::Tensor& second) {
  TORCH_CHECK(first.device() == second.device(),
              "Expected all tensors to be on the same device, but found at least two devices, ",
              first.device(), " and ", second.device(), "! (when checking arguments of ", op, ")");
}

void checkDot(const at::Tensor& self, const at::Tensor& other) {
  checkSameDevice("dot", self, other);
  TORCH_CHECK(self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(),
              "D and ", other.dim(), "D tensors");
  TORCH_CHECK(self.scalar_type() == other.scalar_type(),
              "dot : expected both vectors to have same dtype, but found ", self.scalar_type(),
              " and ", other.scalar_type());
  TORCH_CHECK(self.numel() == other.numel(), "inconsistent tensor size, expected tensor [",
              self.numel(), "] and src [", other.numel(),
              "] to have the same number of elements, but got ", self.numel(), " and ",
              other.numel(), " elements respectively");
}

}  // namespace

void MmOut::impl(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {
  checkSameDevice("mm", self, mat2);
  matmul("addmm_impl_cpu_", out, self, mat2, 0, 1, out);
}

void BmmOut::impl(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {
  checkSameDevice("bmm", self, mat2);
  TORCH_CHECK(self.scalar_type() == mat2.scalar_type(), "expected scalar type ", self.scalar_type(),
              " but found ", mat2.scalar_type());
  matmul("bmm", out, self, mat2, 0, 1, out);
}

void AddmmOut::impl(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2,
                    const at::Scalar& beta, const at::Scalar& alpha, const at::Tensor& out) {
  checkSameDevice("addmm", mat1, mat2);
  checkSameDevice("addmm", mat1, self);
  matmul("addmm_impl_cpu_", self.expand(out.sizes()), mat1, mat2, beta, alpha, out);
}

void BaddbmmOut::impl(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
                      const at::Scalar& beta, const at::Scalar& alpha, const at::Tensor& out) {
  checkSameDevice("baddbmm", batch1, batch2);
  checkSameDevice("baddbmm", batch1, self);
  matmul("baddbmm", self.expand(out.sizes()), batch1, batch2, beta, alpha, out);
}

void AddmvOut::impl(const at::Tensor& self, const at::Tensor& mat, const at::Tensor& vec,
                    const at::Scalar& beta, const at::Scalar& alpha, const at::Tensor& out) {
  checkSameDevice("addmv", mat, vec);
  checkSameDevice("addmv", mat, self);
  matmul("addmv_impl_cpu", self.expand(out.sizes()), mat, vec, beta, alpha, out);
}

at::Tensor dot(const at::Tensor& self, const at::Tensor& other) {
  checkDot(self, other);
  const c10::DeviceGuard guard(self.device());
  const at::Tensor out = newOutput({}, {}, self.options());
  matmul("dot", out, self, other, 0, 1, out);
  return out;
}

at::Tensor vdot(const at::Tensor& self, const at::Tensor& other) {
  checkDot(self, other);
  return self.conj().dot(other);
}

}  // namespace torch_accel
