#include "hook/torch/cuda/tensor_history.h"

#include <algorithm>
#include <utility>

namespace spillway {

void TensorHistory::set(Wishes wishes) {
  const MutexLock lock(mutex_);
  wishes_ = std::move(wishes);
  wishes_.most_entries = std::max<std::size_t>(wishes_.most_entries, 1);
  if (!wishes_.enabled || wishes_.clear) entries_.clear();
  while (entries_.size() > wishes_.most_entries) entries_.pop_front();
  create_context_.store(wishes_.enabled ? wishes_.create_context : nullptr);
  level_.store(wishes_.enabled ? wishes_.when : RecordContext::NEVER);
  is_wanted_.store(wishes_.enabled || !trackers_.empty());
}

void TensorHistory::attach(Tracker tracker) {
  const MutexLock lock(mutex_);
  trackers_.push_back(std::move(tracker));
  is_wanted_.store(true);
}

TensorHistory::Context TensorHistory::context(RecordContext level) const {
  if (level_.load(std::memory_order_relaxed) < level) return nullptr;
  const CreateContext create = create_context_.load();
  return create != nullptr ? create() : nullptr;
}

void TensorHistory::add(Happened happened) {
  if (!is_wanted()) return;
  const MutexLock lock(mutex_);
  const bool keeps_context = wishes_.enabled && wishes_.when >= RecordContext::ALLOC;
  Entry entry(happened.action, happened.device, happened.address, happened.bytes, happened.stream, {0, 0},
              c10::getApproximateTime(), keeps_context ? std::move(happened.context) : nullptr, "",
              std::move(happened.metadata));
  for (const Tracker& tracker : trackers_) tracker(entry);
  if (!wishes_.enabled || std::ranges::count(wishes_.skipped, happened.action) > 0) return;
  if (entries_.size() == wishes_.most_entries) entries_.pop_front();
  entries_.push_back(std::move(entry));
}

std::vector<TensorHistory::Entry> TensorHistory::entries() const {
  const auto nanos_of = clock_.makeConverter();
  const MutexLock lock(mutex_);
  std::vector<Entry> result(entries_.begin(), entries_.end());
  for (Entry& entry : result) entry.time_.t_ = nanos_of(entry.time_.approx_t_) / 1000;
  return result;
}

}  // namespace spillway
