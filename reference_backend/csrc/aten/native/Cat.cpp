// cat: one launch that copies every input to its place in the output.
#include <ATen/Parallel.h>
#include <ATen/core/IListRef.h>
#include <ATen/ops/cat_meta.h>
#include <torch/library.h>

#include "aten/native/Slices.h"
#include "aten/native/Structured.h"
#include "runtime/Launch.h"
#include "runtime/Stream.h"

namespace torch_accel {
namespace {

struct Piece {
  SliceCopy copy;
  void* to;
  const void* from;
  int64_t numel;
};

struct CatLaunch {
  std::vector<Piece> pieces;

  void operator()() const {
    int64_t numel = 0;
    for (const Piece& piece : pieces) numel += piece.numel;
    const auto count = static_cast<int64_t>(pieces.size());
    at::parallel_for(0, count, numel > kGrain ? 1 : count, [&](int64_t begin, int64_t end) {
      BlockBuffer buffer;
      for (int64_t i = begin; i < end; ++i) {
        pieces[i].copy.run(buffer, static_cast<char*>(kernelPointer(pieces[i].to)),
                           static_cast<const char*>(kernelPointer(pieces[i].from)));
      }
    });
  }
};

// meta() has checked shapes, devices and overlap, and wrapped `dim`.
void concatenate(const at::ITensorListRef& tensors, int64_t dim, const at::Tensor& out) {
  if (out.numel() == 0) return;
  CatLaunch d;
  int64_t start = 0;
  for (const at::Tensor& tensor : tensors) {
    // Empty vectors are let through whatever the other shapes, for old times' sake.
    if (tensor.dim() == 1 && tensor.numel() == 0) continue;
    const int64_t to = start * out.stride(dim);
    start += tensor.size(dim);
    if (tensor.numel() == 0) continue;
    SliceCopy copy(out.scalar_type(), tensor.scalar_type());
    for (int64_t i = out.dim() - 1; i >= 0; --i) {
      copy.addDimension(tensor.size(i), out.stride(i), tensor.stride(i));
    }
    copy.finish();
    d.pieces.push_back({copy, static_cast<char*>(out.data_ptr()) + to * out.element_size(),
                        tensor.data_ptr(), tensor.numel()});
  }
  launch(currentStream(out.device().index()), "cat", std::move(d));
}

template <Form kForm>
void run(Structured<at::meta::structured_cat, kForm, 1>& op, const at::ITensorListRef& tensors,
         int64_t dim) {
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK(tensor.is_privateuseone(),
                "Expected all tensors to be on the same device, but found at least two devices, ",
                tensor.device(), " and ", kAccel, "! (when checking arguments of cat)");
  }
  const auto checked = op.meta(tensors, dim);
  concatenate(tensors, checked.dim, op.output(0));
  op.finish();
}

at::Tensor cat(const at::ITensorListRef& tensors, int64_t dim) {
  c10::OptionalDeviceGuard guard;
  if (tensors.size()) guard.reset_device(tensors.front().device());
  Structured<at::meta::structured_cat, Form::kFunctional, 1> op;
  run(op, tensors, dim);
  return std::move(op.outputs()[0]);
}

at::Tensor& catOut(const at::ITensorListRef& tensors, int64_t dim, at::Tensor& out) {
  const c10::DeviceGuard guard(out.device());
  Structured<at::meta::structured_cat, Form::kOut, 1> op({&out});
  run(op, tensors, dim);
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("cat", &cat);
  m.impl("cat.out", &catOut);
}

}  // namespace
}  // namespace torch_accel
