// Resizing storages on the device.
#pragma once

#include <c10/core/StorageImpl.h>

namespace torch_accel {

// Gives the storage `bytes` bytes, keeping the common prefix: a new block, a queued copy on the
// current stream, and the old block freed in stream order. Raises when it is not resizable.
void resizeStorage(c10::StorageImpl* storage, size_t bytes);

}  // namespace torch_accel
