// The driver of the `accel` device: a plain C API with no torch in it.
//
// This is the surface a real card's driver offers: devices, device memory, streams, events,
// page-locked host memory, asynchronous copies and kernel launch. The "card" is this machine's own
// memory and threads, but nothing above the driver can tell:
//
//  * Device memory is not host-addressable. accelMalloc returns an address in a PROT_NONE range;
//    host code that dereferences it dies with SIGSEGV, as it would on a real card. Kernels reach
//    the memory behind an address with accelKernelPointer(), which adds a fixed distance.
//  * A stream is a queue with a worker thread of its own, started when the first work is queued.
//    Calls named *Async and accelLaunchKernel return before the work has run.
//  * Work that fails leaves a pending error on its device, returned (and cleared) by the next call
//    that synchronises with that device. Later work on the device runs as usual.
//
// Settings come from the environment, read once at the first use: TORCH_ACCEL_DEVICES and
// TORCH_ACCEL_MEMORY. A wrong value makes every call that needs a device fail with
// ACCEL_ERROR_INVALID_VALUE and a message that names it.
//
// In a child forked after a worker had started, calls that touch a device return
// ACCEL_ERROR_FORKED; destroying streams and events there does nothing. From inside a kernel or its
// cleanup, calls that wait (synchronise, accelFree, accelShutdown) return
// ACCEL_ERROR_INVALID_VALUE: they would wait for themselves. Queueing from there is fine.
//
// Every function may be called from any thread. None throws. All return ACCEL_SUCCESS (0) or the
// reason of failure; accelGetLastErrorMessage() tells more about the calling thread's last failure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum accelError {
  ACCEL_SUCCESS = 0,
  ACCEL_ERROR_INVALID_VALUE = 1,    // an argument is out of range, or null where it may not be
  ACCEL_ERROR_INVALID_DEVICE = 2,   // no device of that index
  ACCEL_ERROR_OUT_OF_MEMORY = 3,    // the device (or host) has no room for the request
  ACCEL_ERROR_NOT_READY = 4,        // a query: the work is queued or running (no failure)
  ACCEL_ERROR_INVALID_ADDRESS = 5,  // not a live allocation's first byte, or not all within one
  ACCEL_ERROR_LAUNCH_FAILURE = 6,   // a kernel reported failure; the message is the kernel's
  ACCEL_ERROR_NOT_RECORDED = 7,     // elapsed time of an event that was never recorded
  ACCEL_ERROR_NO_TIMING = 8,        // elapsed time of an event created without timing
  ACCEL_ERROR_WRONG_DEVICE = 9,     // stream and event, or two events, belong to two devices
  ACCEL_ERROR_FORKED = 10,          // the process forked after the driver had started a stream
  ACCEL_ERROR_SHUT_DOWN = 11        // the driver was shut down
} accelError_t;

// Symbolic name ("ACCEL_ERROR_OUT_OF_MEMORY") and a sentence. Static strings, never null.
const char* accelGetErrorName(accelError_t error);
const char* accelGetErrorString(accelError_t error);
// Details of the last call that failed on this thread; "" if none did. Valid until the next one.
const char* accelGetLastErrorMessage(void);

// ---- devices ------------------------------------------------------------------------------------

typedef struct accelDeviceProperties {
  char name[64];
  size_t total_memory;        // bytes
  int multi_processor_count;  // host threads that a kernel may use
  int major, minor;           // version of the "hardware"
} accelDeviceProperties;

// Number of devices: TORCH_ACCEL_DEVICES (0 to 64; default 2). Starts no thread, maps no memory.
accelError_t accelGetDeviceCount(int* count);
accelError_t accelGetDeviceProperties(int device, accelDeviceProperties* properties);
// The calling thread's current device (0 at first).
accelError_t accelGetDevice(int* device);
accelError_t accelSetDevice(int device);
// 1 once the device has memory mapped or a stream started, else 0.
accelError_t accelDeviceIsActive(int device, int* active);
// Waits for everything queued on any stream of the device; returns its pending error, if any.
accelError_t accelDeviceSynchronize(int device);

// ---- memory -------------------------------------------------------------------------------------

// Granularity of accelMalloc: sizes are rounded up to it, addresses are aligned to it.
#define ACCEL_PAGE_SIZE ((size_t)4096)

// Device memory of at least `size` bytes. The size of a device is TORCH_ACCEL_MEMORY (bytes, or
// with a suffix K, M or G; default 4G), reserved lazily. A size of 0 gives a null address.
accelError_t accelMalloc(int device, size_t size, void** address);
// Waits for all queued work of the device (as a card's free does), then gives the pages back. The
// device's pending error stays for the next synchronisation. A null address is no error.
accelError_t accelFree(void* address);
accelError_t accelMemGetInfo(int device, size_t* free_bytes, size_t* total_bytes);

typedef enum accelMemoryKind {
  ACCEL_MEMORY_UNKNOWN = 0,  // pageable host memory, or nothing
  ACCEL_MEMORY_DEVICE = 1,
  ACCEL_MEMORY_HOST = 2  // page-locked host memory from accelHostAlloc
} accelMemoryKind;

// What an address (interior ones too) belongs to; `device` is -1 unless it is device memory. Either
// output may be null.
accelError_t accelPointerGetAttributes(const void* address, accelMemoryKind* kind, int* device);

// Page-locked host memory: host-addressable, and the source or target of truly asynchronous copies.
// accelHostFree does not wait: the caller knows that no queued copy needs the memory.
accelError_t accelHostAlloc(size_t size, void** address);
accelError_t accelHostFree(void* address);

// ---- streams ------------------------------------------------------------------------------------

typedef struct accelStream* accelStream_t;

// Priorities run from 0 (normal) to -1 (high): with the workers of several streams runnable, those
// of high-priority streams are preferred by the operating system where it allows that (a process
// without the right to raise a thread's priority gets an ordinary stream).
accelError_t accelStreamCreate(int device, int priority, accelStream_t* stream);
// Lets the queued work finish, then ends the worker. The call itself does not wait.
accelError_t accelStreamDestroy(accelStream_t stream);
accelError_t accelStreamGetDevice(accelStream_t stream, int* device);
// ACCEL_SUCCESS when nothing is queued or running, else ACCEL_ERROR_NOT_READY.
accelError_t accelStreamQuery(accelStream_t stream);
// Waits for the work queued so far; returns the device's pending error, if any, and clears it.
accelError_t accelStreamSynchronize(accelStream_t stream);

// ---- events -------------------------------------------------------------------------------------

typedef struct accelEvent* accelEvent_t;

#define ACCEL_EVENT_DEFAULT 0u
#define ACCEL_EVENT_DISABLE_TIMING 1u

accelError_t accelEventCreate(int device, unsigned flags, accelEvent_t* event);
// Safe while records of, or waits on, the event are still queued.
accelError_t accelEventDestroy(accelEvent_t event);
// Starts a new version of the event, complete when the work queued on the stream so far is (on an
// idle stream: at once).
accelError_t accelEventRecord(accelEvent_t event, accelStream_t stream);
// Work queued on the stream from here on waits for the version recorded last; a later record does
// not move the wait. A never-recorded event is no wait. The stream may be another device's.
accelError_t accelStreamWaitEvent(accelStream_t stream, accelEvent_t event);
// ACCEL_SUCCESS when never recorded or complete, else ACCEL_ERROR_NOT_READY.
accelError_t accelEventQuery(accelEvent_t event);
// Waits for the version recorded last; returns the device's pending error, if any, and clears it.
accelError_t accelEventSynchronize(accelEvent_t event);
// Milliseconds between the two last records; both complete, on one device, created with timing.
// ACCEL_ERROR_NOT_READY when one is not complete.
accelError_t accelEventElapsedTime(accelEvent_t start, accelEvent_t end, double* milliseconds);

// ---- work ---------------------------------------------------------------------------------------

// A kernel runs on the stream's worker. It returns 0, or another value after writing a message of
// at most message_size bytes (with its 0) into `message`: the device's pending error.
typedef int (*accelKernel_t)(void* argument, char* message, size_t message_size);
// Releases the argument; runs on the worker right after the kernel (also when the kernel is
// dropped).
typedef void (*accelKernelCleanup_t)(void* argument);

// Queues a kernel. On failure to queue, the argument still belongs to the caller. `cleanup` may be
// null. `name` is used in messages and must outlive the call only.
accelError_t accelLaunchKernel(accelStream_t stream, const char* name, accelKernel_t kernel,
                               void* argument, accelKernelCleanup_t cleanup);

// Bytes between any two places, each device memory or page-locked or pageable host memory. Pageable
// host memory is read or written by the worker when the copy's turn comes: the caller keeps it
// alive. The two may overlap. A range that starts in device memory must lie within one live
// allocation.
accelError_t accelMemcpyAsync(void* destination, const void* source, size_t size,
                              accelStream_t stream);
accelError_t accelMemsetAsync(void* destination, int value, size_t size, accelStream_t stream);

// For kernels only: the memory behind a device address (null stays null).
ptrdiff_t accelKernelDistance(void);
static inline void* accelKernelPointer(const void* address) {
  return address ? (char*)address + accelKernelDistance() : NULL;
}

// Waits for all streams, ends their workers; every later call that needs one fails with
// ACCEL_ERROR_SHUT_DOWN, while queries, synchronisation and the release of objects go on. Called at
// exit by whoever loaded the driver (again: no error), holding no lock that a kernel may need.
accelError_t accelShutdown(void);

#ifdef __cplusplus
}
#endif
