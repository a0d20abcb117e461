// Outputs of structured operators: new, resized or checked.
#include "aten/native/Structured.h"

#include <ATen/native/Resize.h>

namespace torch_accel {

at::Tensor newOutput(at::IntArrayRef sizes, at::IntArrayRef strides,
                     const c10::TensorOptions& options) {
  const c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  const c10::ScalarType dtype = c10::typeMetaToScalarType(options.dtype());
  if (!strides.empty()) {
    return at::detail::empty_strided_generic(sizes, strides, deviceAllocator(), keys, dtype);
  }
  return at::detail::empty_generic(sizes, deviceAllocator(), keys, dtype,
                                   options.memory_format_opt());
}

void fitOutput(const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides,
               const c10::TensorOptions& options) {
  TORCH_CHECK(options.dtype() == out.dtype(), "Expected out tensor to have dtype ", options.dtype(),
              ", but got ", out.dtype(), " instead");
  TORCH_CHECK(options.device() == out.device(), "Expected out tensor to have device ",
              options.device(), ", but got ", out.device(), " instead");
  // An output of the right size keeps its own strides.
  if (!at::native::resize_output(out, sizes)) return;
  if (!strides.empty()) {
    out.as_strided_(sizes, strides);
  } else if (const auto format = options.memory_format_opt()) {
    out.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
}

void checkInplace(const at::Tensor& self, at::IntArrayRef sizes,
                  const c10::TensorOptions& options) {
  TORCH_CHECK(options.dtype() == self.dtype(), "Bad in-place call: input tensor dtype ",
              self.dtype(), " and output tensor dtype ", options.dtype(), " should match");
  TORCH_CHECK(options.device() == self.device(), "Bad in-place call: input tensor device ",
              self.device(), " and output tensor device ", options.device(), " should match");
  TORCH_CHECK(sizes == self.sizes(), "Bad in-place call: input tensor size ", self.sizes(),
              " and output tensor size ", sizes, " should match");
}

}  // namespace torch_accel
