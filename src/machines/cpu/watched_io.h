#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "machines/cpu/block_io.h"
#include "machines/cpu/clock.h"

namespace spillway {

// The transfer that has been under way for longest: when it was started (CLOCK_MONOTONIC, nanoseconds), doubled, and
// one more if it writes; 0 if there is none. One word, so that another process sees both of the same transfer.
using OldestTransfer = std::atomic<std::uint64_t>;

// Says in `oldest` how long the file lets us wait, before it does: a disk that stops answering may stop this thread,
// too, even in io_uring.
class WatchedIo final : public BlockIo {
 public:
  WatchedIo(std::unique_ptr<BlockIo> io, OldestTransfer& oldest) : io_(std::move(io)), oldest_(oldest) {
    oldest_.store(0, std::memory_order_relaxed);  // What an earlier program of this process has left.
  }
  ~WatchedIo() override { oldest_.store(0, std::memory_order_relaxed); }

  void start(const Transfer& transfer) override {
    under_way_.push_back({transfer.id, now().value * 2 + (transfer.write ? 1 : 0)});
    publish();
    io_->start(transfer);
  }
  Result<> wait(std::vector<Completion>& ended, std::optional<std::chrono::microseconds> timeout) override {
    const std::size_t before = ended.size();
    auto result = io_->wait(ended, timeout);
    if (ended.size() == before) return result;
    for (std::size_t at = before; at < ended.size(); ++at) {
      const auto found = std::ranges::find(under_way_, ended[at].id, &Active::id);
      if (found != under_way_.end()) under_way_.erase(found);
    }
    publish();
    return result;
  }

 private:
  struct Active {
    std::uint32_t id;
    std::uint64_t since;
  };
  void publish() {  // In the order of their starts, so the first is the oldest.
    oldest_.store(under_way_.empty() ? 0 : under_way_.front().since, std::memory_order_relaxed);
  }

  std::unique_ptr<BlockIo> io_;
  OldestTransfer& oldest_;
  std::vector<Active> under_way_;
};

}  // namespace spillway
