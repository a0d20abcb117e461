// See Copy.h.
//
// A vendor replaces: the strided, casting copy (here: CPU code in a worker) with kernels of theirs.
#include "aten/Copy.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/record_function.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "aten/Alias.h"
#include "aten/Resize.h"
#include "runtime/Allocator.h"
#include "runtime/Device.h"
#include "runtime/Error.h"
#include "runtime/Launch.h"
#include "runtime/Stream.h"

namespace torch_accel {
namespace {

constexpr const char* kName = "aten::copy_";

bool onDevice(const at::Tensor& tensor) {
  return tensor.device().type() == kAccel;
}

// One side of a copy, as the worker sees it: device memory, or host memory at its own address.
struct Side {
  bool device;
  TensorRecipe recipe;

  explicit Side(const at::Tensor& tensor)
      : device(onDevice(tensor)), recipe(TensorRecipe::of(tensor)) {}

  at::Tensor make(AliasMaker& maker) const {
    if (device) return maker.make(recipe);
    const size_t itemsize = c10::elementSize(recipe.dtype);
    char* first = static_cast<char*>(recipe.storage_address) +
                  static_cast<size_t>(recipe.storage_offset) * itemsize;
    at::Tensor host =
        at::from_blob(first, recipe.sizes, recipe.strides, at::TensorOptions().dtype(recipe.dtype));
    if (recipe.conj) host._set_conj(true);
    if (recipe.neg) host._set_neg(true);
    return host;
  }
};

bool isPlain(const at::Tensor& source, const at::Tensor& destination) {
  return source.scalar_type() == destination.scalar_type() &&
         source.is_conj() == destination.is_conj() && source.is_neg() == destination.is_neg() &&
         source.strides() == destination.strides() && source.is_non_overlapping_and_dense();
}

// Queues the copy, of equal sizes. `keep_alive` is a host staging tensor, dropped by the worker.
void queueCopy(const at::Tensor& source, const at::Tensor& destination, const c10::Stream& stream,
               at::Tensor keep_alive = {}) {
  if (!keep_alive.defined() && isPlain(source, destination)) {
    ACCEL_CHECK(accelMemcpyAsync(destination.mutable_data_ptr(), source.const_data_ptr(),
                                 destination.nbytes(), driverStream(stream)));
    return;
  }
  launch(stream, kName,
         [from = Side(source), to = Side(destination), staged = std::move(keep_alive)] {
           AliasMaker maker;
           at::Tensor target = to.make(maker);
           target.copy_(from.make(maker));
         });
}

// A copy of a host tensor's contents that nobody else can change, in the same layout.
at::Tensor stage(const at::Tensor& source) {
  const at::DisableRecordFunctionGuard unobserved;  // no operator of the user's
  at::Tensor staged =
      at::empty(source.sizes(), at::TensorOptions().dtype(source.scalar_type()).device(at::kCPU));
  if (source.is_conj()) staged._set_conj(true);
  if (source.is_neg()) staged._set_neg(true);
  staged.copy_(source);
  return staged;
}

void hostToDevice(const at::Tensor& source, const at::Tensor& destination, bool non_blocking) {
  const c10::Stream stream = currentStream(destination.device().index());
  if (!non_blocking) {
    queueCopy(source.expand(destination.sizes()), destination, stream);
    synchronizeStream(stream);
  } else if (isPinnedPointer(source.storage().data())) {
    queueCopy(source.expand(destination.sizes()), destination, stream);
    recordPinnedUse(source.storage().data(), source.storage().data_ptr().get_context(), stream);
  } else {
    const at::Tensor staged = stage(source);
    queueCopy(staged.expand(destination.sizes()), destination, stream, staged);
  }
}

void deviceToHost(const at::Tensor& source, const at::Tensor& destination, bool non_blocking) {
  const c10::Stream stream = currentStream(source.device().index());
  queueCopy(source.expand(destination.sizes()), destination, stream);
  const at::Storage& storage = destination.storage();
  if (non_blocking && isPinnedPointer(storage.data())) {
    recordPinnedUse(storage.data(), storage.data_ptr().get_context(), stream);
  } else {
    synchronizeStream(stream);
  }
}

// Makes what is queued on `later` from here on wait for what is queued on `earlier` so far.
void order(const c10::Stream& earlier, const c10::Stream& later) {
  accelEvent_t event = nullptr;
  const accelStream_t first = driverStream(earlier), second = driverStream(later);
  ACCEL_CHECK(accelEventCreate(earlier.device_index(), ACCEL_EVENT_DISABLE_TIMING, &event));
  accelError_t error = accelEventRecord(event, first);
  if (error == ACCEL_SUCCESS) error = accelStreamWaitEvent(second, event);
  (void)accelEventDestroy(event);
  ACCEL_CHECK(error);
}

void deviceToDevice(const at::Tensor& source, const at::Tensor& destination) {
  const c10::Stream stream = currentStream(source.device().index());
  const at::Tensor expanded = source.expand(destination.sizes());
  if (source.device() == destination.device()) {
    queueCopy(expanded, destination, stream);
    return;
  }
  // Runs on the source's stream; the destination's stream is held up before and after.
  const c10::Stream other = currentStream(destination.device().index());
  order(other, stream);
  queueCopy(expanded, destination, stream);
  order(stream, other);
}

void checkCopy(const at::Tensor& source, const at::Tensor& destination) {
  for (const at::Tensor& tensor : {source, destination}) {
    TORCH_CHECK(tensor.layout() == at::kStrided && (onDevice(tensor) || tensor.device().is_cpu()),
                "accel copies between strided tensors on accel and the CPU, not ", tensor.layout(),
                " tensors on ", tensor.device());
  }
  const auto common = at::infer_size_dimvector(destination.sizes(), source.sizes());
  TORCH_CHECK(destination.sizes() == common, "output with shape ", destination.sizes(),
              " doesn't match the broadcast shape ", at::IntArrayRef(common));
  at::assert_no_internal_overlap(destination);
  if (source.device() == destination.device()) {
    at::assert_no_partial_overlap(destination, source);
  }
  if (source.is_complex() && !destination.is_complex()) {
    TORCH_WARN_ONCE("Casting complex values to real discards the imaginary part");
  }
}

}  // namespace

at::Tensor copyFrom(const at::Tensor& self, const at::Tensor& destination, bool non_blocking) {
  TORCH_INTERNAL_ASSERT(onDevice(self) || onDevice(destination));
  checkCopy(self, destination);
  if (destination.numel() == 0 || self.is_same(destination)) return destination;
  {
    // A copy-on-write storage gets memory of its own first, on its device and in its stream's
    // order.
    const c10::DeviceGuard guard(destination.device());
    destination.mutable_data_ptr();
  }
  if (!onDevice(self)) {
    hostToDevice(self, destination, non_blocking);
  } else if (!onDevice(destination)) {
    deviceToHost(self, destination, non_blocking);
  } else {
    deviceToDevice(self, destination);
  }
  return destination;
}

at::Tensor copyFromAndResize(const at::Tensor& self, const at::Tensor& destination) {
  if (destination.sizes() != self.sizes()) destination.resize_(self.sizes());
  return copyFrom(self, destination, /*non_blocking=*/false);
}

at::Scalar localScalarDense(const at::Tensor& self) {
  const at::Tensor host = at::detail::empty_cpu({}, self.scalar_type());
  const c10::Stream stream = currentStream(self.device().index());
  queueCopy(self.numel() == 1 && self.dim() > 0 ? self.reshape({}) : self, host, stream);
  synchronizeStream(stream);
  return at::native::_local_scalar_dense_cpu(host);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_copy_from", TORCH_FN(copyFrom));
  library.impl("_copy_from_and_resize", TORCH_FN(copyFromAndResize));
  library.impl("_local_scalar_dense", TORCH_FN(localScalarDense));
}

// The copy reads and writes the conj and neg bits itself. Without these, the fallback of the two
// keys would resolve the bit by a copy, and so come here again, for ever.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
  library.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, library) {
  library.impl("_copy_from", torch::CppFunction::makeFallthrough());
  library.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

}  // namespace torch_accel
