// Inner parts of the generic mechanism (see Generic.h): an operator's record, a parsed call, a
// plan.
//
//   OpRecord    what is known of an operator before any call; one each, never freed.
//   ParsedCall  the tensors of one call, and the key of its metadata.
//   Plan        what a call with that key does: outputs to allocate, arguments to resize, what to
//   queue.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/SmallVector.h>

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "aten/Alias.h"
#include "runtime/Generator.h"

namespace torch_accel::generic {

using Stack = std::vector<c10::IValue>;
using Sizes = c10::SmallVector<int64_t, 5>;

// ---- plan

struct OutputPlan {
  enum class Kind : uint8_t {
    kFresh,      // a new tensor, written by the kernel
    kArgument,   // the argument in slot `slot` itself
    kView,       // shares the storage of slot `slot`: nothing to compute
    kUndefined,  // an undefined tensor
    kConstant,   // no tensor: `constant`
  };
  Kind kind = Kind::kFresh;
  int slot = -1;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  Sizes sizes, strides;
  int64_t offset = 0;  // of a view, in bytes from the slot's own first element
  c10::IValue constant;
};

// One return of the schema: one output, or a list of them.
struct ReturnPlan {
  bool is_list = false;
  std::vector<OutputPlan> outputs;
};

// An `out=` argument that must change its shape first.
struct ResizePlan {
  int slot;
  Sizes sizes, strides;
  bool warned;  // PyTorch's shape function has said so, in the call that the plan was made for
};

struct OpRecord;
struct ParsedCall;

struct Plan {
  bool fallback = false;               // wait for the CPU kernel: no metadata beforehand
  bool queue = true;                   // false: views only
  bool default_dtype_matters = false;  // integers become the default dtype
  const OpRecord* run_as = nullptr;    // the out= variant, run straight into the fresh outputs
  std::vector<ReturnPlan> returns;
  std::vector<ResizePlan> resizes;
};

// ---- metadata cache

using Key = c10::SmallVector<uint64_t, 96>;

// Plans of one operator, keyed on all that its metadata can depend on. Bounded: the oldest goes.
class PlanCache {
 public:
  static constexpr size_t kCapacity = 512;
  std::shared_ptr<const Plan> find(const Key& key, uint64_t hash);
  void insert(const Key& key, uint64_t hash, std::shared_ptr<const Plan> plan);

 private:
  struct Entry {
    std::vector<uint64_t> key;
    uint64_t hash;
    std::shared_ptr<const Plan> plan;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  // oldest first
  std::unordered_multimap<uint64_t, std::list<Entry>::iterator> index_;
};

uint64_t hashKey(const Key& key);

// What trials have shown of an operator: whether its CPU kernel implements a combination of dtypes.
class KnownDtypes {
 public:
  std::optional<bool> find(uint64_t hash) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = implemented_.find(hash);
    return it == implemented_.end() ? std::nullopt : std::optional<bool>(it->second);
  }
  void insert(uint64_t hash, bool implemented) {
    const std::lock_guard<std::mutex> lock(mutex_);
    implemented_.emplace(hash, implemented);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, bool> implemented_;
};

// ---- operator

enum class ArgumentKind : uint8_t { kTensor, kTensorList, kOptionalTensorList, kGenerator, kOther };

struct ArgumentTraits {
  ArgumentKind kind = ArgumentKind::kOther;
  bool written = false;  // in-place or out=
  bool out = false;
};

// Where the outputs' metadata comes from when the cache has none.
enum class Source : uint8_t {
  kMeta,       // the op's Meta kernel, or its composite kernel on meta tensors
  kWritten,    // nothing to find out: only arguments are written
  kFirstLike,  // no shape function exists; every output is like the first tensor argument
  kDryRun,     // the CPU kernel itself on made-up values, on the calling thread
  kFallback,   // depends on data, or is not known: wait for the result
};

struct OpRecord {
  OpRecord(const c10::OperatorHandle& handle, Source source);

  c10::OperatorHandle op;
  std::string name;  // "aten::add.out"
  Source source;
  std::vector<ArgumentTraits> arguments;
  std::vector<int> return_argument;  // per return: the written argument it is, or -1
  int generator = -1;                // index of the generator argument
  bool has_out = false;              // an out= variant
  bool functional = true;            // writes no argument
  bool host_indices = false;         // CPU index tensors are welcome
  bool scalars_in_key = true;        // false: shapes cannot depend on Scalar arguments
  bool python_meta = false;          // its Meta kernel is Python, which warns by itself
  // Of a structured functional op: its composite kernel finds metadata in C++ and calls this one.
  const OpRecord* out_variant = nullptr;

  void (*check)(const ParsedCall& call, const Stack& stack) = nullptr;  // what Meta does not check

  mutable PlanCache cache;
  mutable KnownDtypes known_dtypes;
  mutable std::atomic<uint64_t> fallback_calls{0};

  size_t size() const { return arguments.size(); }
};

// ---- call

// A tensor among the arguments, or an element of a list argument.
struct Slot {
  const at::Tensor* tensor;
  int16_t argument;
  int32_t item;  // index in a list argument, -1 if the argument is the tensor itself
  int32_t same;  // first slot with the same TensorImpl (its own index if none)
  bool on_host;  // a 0-dim CPU tensor
};

struct ParsedCall {
  const OpRecord* record = nullptr;
  c10::SmallVector<Slot, 8> slots;
  c10::Device device{c10::DeviceType::PrivateUse1, -1};
  Key key;
};

// Fills `call` from the operator's arguments; raises for tensors of different devices. May move CPU
// index tensors to the device, in the stack, for operators that take them.
void parseCall(const OpRecord& record, Stack& stack, ParsedCall& call);

// ---- kernels

// A value of a 0-dim CPU tensor, taken when the kernel is queued.
struct HostScalar {
  alignas(16) unsigned char bytes[16];
  c10::ScalarType dtype;
  bool wrapped;
  at::Tensor make() const;
  static HostScalar of(const at::Tensor& tensor);
};

// The arguments of one call without any tensor, and how to make CPU aliases of them on a worker.
class Arguments {
 public:
  Arguments(const ParsedCall& call, const Stack& stack);

  // On the worker: the stack of the CPU kernel. `tensors` gets the alias of each slot.
  void makeStack(AliasMaker& maker, Stack& stack, std::vector<at::Tensor>& tensors) const;
  const OpRecord& record() const { return *record_; }
  const TensorRecipe& recipe(int slot) const { return slots_[slot].recipe; }
  size_t slotCount() const { return slots_.size(); }
  bool written(int slot) const;
  bool hasLazyBits() const { return lazy_bits_; }

 private:
  struct SlotRecipe {
    TensorRecipe recipe;
    HostScalar scalar;
    int16_t argument;
    int32_t item;
    int32_t same;
    bool on_host;
  };
  const OpRecord* record_;
  c10::SmallVector<SlotRecipe, 4> slots_;
  Stack values_;  // tensors replaced by None; list lengths are kept as integers
  std::optional<RandomTicket> ticket_;
  bool lazy_bits_ = false;
};

// Runs the operator's CPU kernel on CPU tensors, on a worker.
void runOnCpu(const c10::OperatorHandle& op, Stack& stack, bool lazy_bits);

// Queues the plan's kernel. `fresh` are the new outputs in order.
void queueKernel(const ParsedCall& call, const Stack& stack, std::shared_ptr<const Plan> plan,
                 const std::vector<at::Tensor>& fresh);

// Works out the plan of a call that is not in the cache. Returns null when that fails: the CPU
// kernel must be asked.
std::shared_ptr<const Plan> makePlan(const ParsedCall& call, const Stack& stack);

// Notes that a call had to wait for its result.
inline void countFallback(const OpRecord& record) {
  record.fallback_calls.fetch_add(1, std::memory_order_relaxed);
}

// True while a composite kernel looks for metadata on this thread: out= variants do nothing then.
bool lookingForShapes();

}  // namespace torch_accel::generic
