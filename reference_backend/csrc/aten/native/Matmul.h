// mm, bmm, addmm, baddbmm, addmv, dot and vdot.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm_meta.h>
#include <ATen/ops/addmv_meta.h>
#include <ATen/ops/baddbmm_meta.h>
#include <ATen/ops/bmm_meta.h>
#include <ATen/ops/mm_meta.h>

namespace torch_accel {

struct MmOut : at::meta::structured_mm {
  void impl(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out);
};
struct BmmOut : at::meta::structured_bmm {
  void impl(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out);
};
struct AddmmOut : at::meta::structured_addmm {
  void impl(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2,
            const at::Scalar& beta, const at::Scalar& alpha, const at::Tensor& out);
};
struct BaddbmmOut : at::meta::structured_baddbmm {
  void impl(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2,
            const at::Scalar& beta, const at::Scalar& alpha, const at::Tensor& out);
};
struct AddmvOut : at::meta::structured_addmv {
  void impl(const at::Tensor& self, const at::Tensor& mat, const at::Tensor& vec,
            const at::Scalar& beta, const at::Scalar& alpha, const at::Tensor& out);
};

at::Tensor dot(const at::Tensor& self, const at::Tensor& other);
at::Tensor vdot(const at::Tensor& self, const at::Tensor& other);

}  // namespace torch_accel
