#include "machines/real/streams.h"

#include <unistd.h>

#include <algorithm>

namespace spillway {
namespace {

std::atomic<std::uint64_t> generations{0};

struct Known {
  std::uint64_t generation = 0;
  StreamId stream;
};
thread_local Known this_thread;

}  // namespace

Streams::Streams() : generation_(generations.fetch_add(1) + 1) {}

StreamId Streams::of_this_thread() {
  if (this_thread.generation != generation_) this_thread = {generation_, {enter(::gettid())}};
  return this_thread.stream;
}

StreamId Streams::of(pid_t thread) {
  // The kernel may give a dead thread's number to a new one; the last to enter has it.
  for (const std::uint32_t count = std::min(count_.load(std::memory_order_acquire), kShared.value); known_ < count;
       ++known_) {
    const pid_t entered = threads_[known_].load(std::memory_order_acquire);
    if (entered == 0) break;  // It is about to be written.
    by_thread_[entered] = known_;
  }
  const auto found = by_thread_.find(thread);
  if (found != by_thread_.end()) return {found->second};
  const std::uint32_t stream = enter(thread);
  by_thread_[thread] = stream;
  return {stream};
}

std::uint32_t Streams::enter(pid_t thread) {
  const std::uint32_t place = count_.fetch_add(1, std::memory_order_acq_rel);
  if (place >= kShared.value) {
    count_.store(kShared.value, std::memory_order_release);
    return kShared.value;
  }
  threads_[place].store(thread, std::memory_order_release);
  return place;
}

}  // namespace spillway
