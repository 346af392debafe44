#include "machines/real/real_machine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "machines/real/clock.h"

namespace spillway {

void RealMachine::stop() {
  stop_.store(true, std::memory_order_release);
  bell_.ring();
}

void RealMachine::tell_all(Nanos patience) {
  if (bell_.is_lost()) return;  // The script ends well; who would hear it?
  inbox_.end();
  static_cast<void>(told_.try_acquire_for(std::chrono::nanoseconds(patience.value)));
}

void RealMachine::let_go(LaunchId launch) {
  launches_[launch.stream.value].store(launch.serial, std::memory_order_release);
  launches_[launch.stream.value].notify_all();
}

std::optional<Event> RealMachine::next_message() {
  while (has_messages()) {
    const Inbox::Message& message = batch_.messages[batch_at_++];
    posted_ = message.at;
    CHECK(message.first_access + message.access_count <= batch_.accesses.size());
    if (auto event = tell(message, std::span(batch_.accesses).subspan(message.first_access, message.access_count)))
      return event;
  }
  posted_.reset();
  return std::nullopt;
}

Stamped RealMachine::stamped(Event event) {
  last_ = std::max(last_, now());
  const std::optional<Nanos> posted = std::exchange(posted_, std::nullopt);
  told_late_ = posted ? excess(last_, *posted) : Nanos{};
  return {last_, std::move(event)};
}

void RealMachine::take_messages() {
  CHECK(!has_messages());
  inbox_.take(batch_);
  batch_at_ = 0;
}

std::optional<Event> RealMachine::tell(const Inbox::Message& message, std::span<const BlockAccess> accesses) {
  const BlockRange blocks = message.blocks;
  switch (message.kind) {
    case Inbox::Kind::allocated:
      ++allocations_;
      for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
        ++lodgers_.at(id.value).allocations;
        ++lodgers_.at(id.value).tensors;
        lodgers_.at(id.value).made_at = allocations_;
      }
      return Allocated{message.tensor, blocks, message.label};
    case Inbox::Kind::freed:
      for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
        CHECK(tensors(id) > 0);
        --lodgers_.at(id.value).tensors;
      }
      return Freed{message.tensor, blocks};
    case Inbox::Kind::kernel_ready:
      running_[message.launch.stream.value] = allocations_;
      return KernelReady{message.launch, message.kernel, accesses, message.execution, message.waits, message.plan};
    case Inbox::Kind::kernel_done:
      running_.erase(message.launch.stream.value);
      return KernelDone{message.launch};
    case Inbox::Kind::missing:
      return misses({message.launch.stream, blocks, message.anew});
    case Inbox::Kind::adopted:
      CHECK(message.adopted < batch_.plans.size());
      return Adopted{std::move(batch_.plans[message.adopted])};
    case Inbox::Kind::forking:
      forks(message.fork, UniqueFd(message.socket));
      return std::nullopt;
    case Inbox::Kind::end:
      told_.release();
      return std::nullopt;
  }
  return std::nullopt;
}

bool RealMachine::is_in_the_making(BlockId block) const {
  const std::uint64_t made_at = lodgers_.at(block.value).made_at;
  return std::ranges::any_of(running_, [&](const auto& kernel) { return kernel.second < made_at; });
}

Event RealMachine::misses(const Faulted& fault) {
  CHECK(false && "page faults say what is missing");
  return fault;
}

void RealMachine::forks(std::uint32_t, UniqueFd) { CHECK(false && "forked processes have no part of this memory"); }

}  // namespace spillway
