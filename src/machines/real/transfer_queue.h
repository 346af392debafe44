#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>

#include "base/check.h"
#include "base/ids.h"
#include "executor/machine.h"

namespace spillway {

// Blocks that wait for their transfer to start, the most urgent first and those in the order they came.
class TransferQueue {
 public:
  void push(BlockId block, Urgency urgency) { queues_[static_cast<std::size_t>(urgency)].push_back(block); }
  bool empty() const {
    return std::ranges::all_of(queues_, [](const auto& queue) { return queue.empty(); });
  }
  BlockId front() { return first().front(); }
  Urgency urgency() {  // of the front
    return static_cast<Urgency>(&first() - queues_.data());
  }
  void pop() { first().pop_front(); }
  // How many were waiting: 1 or 0.
  std::uint32_t erase(BlockId block) {
    std::size_t erased = 0;
    for (auto& queue : queues_) erased += std::erase(queue, block);
    return static_cast<std::uint32_t>(erased);
  }

 private:
  std::deque<BlockId>& first() {
    const auto found = std::ranges::find_if(queues_, [](const auto& queue) { return !queue.empty(); });
    CHECK(found != queues_.end());
    return *found;
  }
  std::array<std::deque<BlockId>, 3> queues_;
};

// Transfers that the disk has been given and has not ended. See Note [Planned transfers].
class UnderWay {
  static constexpr std::size_t kMostPlanned = 4, kMostUrgent = 16;

 public:
  static constexpr std::size_t kMost = kMostPlanned + kMostUrgent;

  bool may_start(Urgency urgency) const {
    return urgency == Urgency::plan ? planned_ < kMostPlanned : urgent_ < kMostUrgent;
  }
  void starts(Urgency urgency) {
    CHECK(may_start(urgency));
    ++of(urgency);
  }
  void ends(Urgency urgency) {
    CHECK(of(urgency) > 0);
    --of(urgency);
  }
  std::size_t count() const { return planned_ + urgent_; }

 private:
  std::size_t& of(Urgency urgency) { return urgency == Urgency::plan ? planned_ : urgent_; }

  std::size_t planned_ = 0, urgent_ = 0;
};

}  // namespace spillway
