#include "machines/real/inbox.h"

#include <utility>

#include "machines/real/clock.h"

namespace spillway {
namespace {

constexpr std::size_t kMuchMessages = 4096;  // A few iterations of a small model; the loop reads them in a millisecond.

}  // namespace

void Inbox::allocated(TensorId tensor, BlockRange blocks, TensorLabel label) {
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value)
    allocations_[block.value].fetch_add(1, std::memory_order_seq_cst);
  post({.kind = Kind::allocated, .tensor = tensor, .label = label, .blocks = blocks});
}

void Inbox::freed(TensorId tensor, BlockRange blocks) {
  post({.kind = Kind::freed, .tensor = tensor, .blocks = blocks});
}

void Inbox::kernel_ready(const KernelReady& kernel, bool urgent) {
  post({.kind = Kind::kernel_ready,
        .launch = kernel.launch,
        .plan = kernel.plan,
        .kernel = kernel.kernel,
        .execution = kernel.execution,
        .waits = kernel.waits},
       kernel.accesses, urgent);
}

void Inbox::kernel_done(LaunchId launch, bool urgent) {
  post({.kind = Kind::kernel_done, .launch = launch}, {}, urgent);
}

void Inbox::missing(StreamId stream, BlockRange blocks, bool anew) {
  post({.kind = Kind::missing, .launch = {.stream = stream}, .anew = anew, .blocks = blocks});
}

void Inbox::adopted(std::shared_ptr<const FollowedPlan> plan) {
  bool urgent = false;
  {
    const MutexLock lock(mutex_);
    posted_.messages.push_back(
        {.kind = Kind::adopted, .adopted = static_cast<std::uint32_t>(posted_.plans.size()), .at = now()});
    posted_.plans.push_back(std::move(plan));
    urgent = has_much();
  }
  if (urgent) bell_.ring();
}

void Inbox::forking(std::uint32_t fork, UniqueFd socket) {
  post({.kind = Kind::forking, .socket = socket.release(), .fork = fork}, {}, true);
}

void Inbox::end() { post({.kind = Kind::end}, {}, true); }

bool Inbox::has_much() const { return posted_.messages.size() % kMuchMessages == 0; }

void Inbox::post(const Message& message, std::span<const BlockAccess> accesses, bool urgent) {
  const Nanos at = now();
  {
    const MutexLock lock(mutex_);
    Message& posted = posted_.messages.emplace_back(message);
    posted.at = at;
    posted.first_access = static_cast<std::uint32_t>(posted_.accesses.size());
    posted.access_count = static_cast<std::uint32_t>(accesses.size());
    posted_.accesses.insert(posted_.accesses.end(), accesses.begin(), accesses.end());
    urgent |= has_much();
  }
  if (urgent) bell_.ring();
}

void Inbox::take(Batch& batch) {
  batch.messages.clear();
  batch.accesses.clear();
  batch.plans.clear();
  const MutexLock lock(mutex_);
  std::swap(batch, posted_);
}

}  // namespace spillway
