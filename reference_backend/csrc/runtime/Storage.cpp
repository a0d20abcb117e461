// See Storage.h.
#include "runtime/Storage.h"

#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "runtime/Allocator.h"
#include "runtime/Error.h"
#include "runtime/Stream.h"

namespace torch_accel {

void resizeStorage(c10::StorageImpl* storage, size_t bytes) {
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  const c10::Device device = storage->device();
  const c10::DeviceGuard guard(device);
  c10::DataPtr fresh = deviceAllocator()->allocate(bytes);
  const size_t kept = std::min(bytes, storage->nbytes());
  if (kept > 0) {
    const c10::Stream stream = currentStream(device.index());
    ACCEL_CHECK(accelMemcpyAsync(fresh.get(), storage->data(), kept, driverStream(stream)));
    // The old block may belong to another stream's pool, where it could be reused at once.
    deviceAllocator()->recordStream(storage->data_ptr(), stream);
  }
  storage->set_data_ptr_noswap(std::move(fresh));
  storage->set_nbytes(bytes);
}

}  // namespace torch_accel
