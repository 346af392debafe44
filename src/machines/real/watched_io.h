#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "machines/real/block_io.h"
#include "machines/real/disk_wait.h"

namespace spillway {

// The thread that uses it waits for the transfer that has been under way for longest, and says so before the file may
// stop it: a disk that stops answering can do that even in io_uring.
class WatchedIo final : public BlockIo {
 public:
  WatchedIo(std::unique_ptr<BlockIo> io, DiskWaits& waits) : io_(std::move(io)), waits_(waits) {}

  void start(const Transfer& transfer) override {
    under_way_.push_back(transfer);
    wait_for_oldest();
    io_->start(transfer);
  }
  Result<> wait(std::vector<Completion>& ended, std::optional<std::chrono::microseconds> timeout) override {
    const std::size_t before = ended.size();
    auto result = io_->wait(ended, timeout);
    for (const Completion& one : std::span(ended).subspan(before)) {
      const auto found = std::ranges::find(under_way_, one.id, &Transfer::id);
      if (found == under_way_.begin()) oldest_.reset();
      if (found != under_way_.end()) under_way_.erase(found);
    }
    wait_for_oldest();
    return result;
  }

 private:
  void wait_for_oldest() {
    if (oldest_ || under_way_.empty()) return;
    oldest_.emplace(&waits_, under_way_.front().write ? WaitsFor::block_write : WaitsFor::block_read);
  }

  std::unique_ptr<BlockIo> io_;
  DiskWaits& waits_;
  std::vector<Transfer> under_way_;  // in the order of their starts
  std::optional<DiskWait> oldest_;
};

}  // namespace spillway
