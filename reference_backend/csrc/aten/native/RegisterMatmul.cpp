// Registration of the matrix products: which kernel PyTorch's dispatcher calls for which overload.
#include <torch/library.h>

#include "aten/native/Matmul.h"
#include "aten/native/Structured.h"

namespace torch_accel {
namespace {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("mm", functional<MmOut>);
  m.impl("mm.out", out<MmOut>);
  m.impl("bmm", functional<BmmOut>);
  m.impl("bmm.out", out<BmmOut>);
  m.impl("addmm", functional<AddmmOut>);
  m.impl("addmm_", inplace<AddmmOut>);
  m.impl("addmm.out", out<AddmmOut>);
  m.impl("baddbmm", functional<BaddbmmOut>);
  m.impl("baddbmm_", inplace<BaddbmmOut>);
  m.impl("baddbmm.out", out<BaddbmmOut>);
  m.impl("addmv", functional<AddmvOut>);
  m.impl("addmv_", inplace<AddmvOut>);
  m.impl("addmv.out", out<AddmvOut>);
  m.impl("dot", &dot);
  m.impl("vdot", &vdot);
}

}  // namespace
}  // namespace torch_accel
