// The cache of output metadata, one for each operator.
#include <algorithm>

#include "aten/Generic.h"
#include "aten/GenericOp.h"

namespace torch_accel {
namespace {

std::atomic<uint64_t> hits{0}, misses{0}, entries{0};

}  // namespace

MetadataCacheCounters metadataCacheCounters() {
  return {hits.load(), misses.load(), entries.load()};
}

namespace generic {

uint64_t hashKey(const Key& key) {
  uint64_t hash = 0x9e3779b97f4a7c15ull ^ key.size();
  for (const uint64_t word : key) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 32;
  }
  return hash;
}

std::shared_ptr<const Plan> PlanCache::find(const Key& key, uint64_t hash) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [first, last] = index_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Entry& entry = *it->second;
    if (std::equal(entry.key.begin(), entry.key.end(), key.begin(), key.end())) {
      hits.fetch_add(1, std::memory_order_relaxed);
      return entry.plan;
    }
  }
  misses.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

void PlanCache::insert(const Key& key, uint64_t hash, std::shared_ptr<const Plan> plan) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (entries_.size() == kCapacity) {
    const auto [first, last] = index_.equal_range(entries_.front().hash);
    index_.erase(std::find_if(
        first, last, [&](const auto& indexed) { return indexed.second == entries_.begin(); }));
    entries_.pop_front();
    entries.fetch_sub(1, std::memory_order_relaxed);
  }
  entries_.push_back({{key.begin(), key.end()}, hash, std::move(plan)});
  index_.emplace(hash, std::prev(entries_.end()));
  entries.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace generic
}  // namespace torch_accel
