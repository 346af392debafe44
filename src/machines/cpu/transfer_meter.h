#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/units.h"

namespace spillway {

// How fast transfers go one way while the disk has something to do, from what has been moved lately: a probe of a
// second sees what caches and credits of a virtual disk allow, not what it does for hours. The run loop writes; any
// thread reads at any time.
class TransferMeter {
 public:
  // From now on so many transfers are under way, and so many bytes have come to their end.
  void note(std::size_t under_way, Bytes ended, Nanos at) {
    if (under_way_ >= kBusy) {
      bytes_ += ended;
      time_ += at - since_;
    }
    under_way_ = under_way;
    since_ = at;
    if (bytes_ < kEnough || time_ == Nanos{}) return;
    rate_.store(static_cast<std::uint64_t>(static_cast<double>(bytes_.value) / seconds(time_)),
                std::memory_order_relaxed);
    if (bytes_ < kMemory) return;
    bytes_ = {bytes_.value / 2};
    time_ = {time_.value / 2};
  }
  // Nothing before enough has moved to tell.
  std::optional<BytesPerSecond> rate() const {
    const std::uint64_t rate = rate_.load(std::memory_order_relaxed);
    return rate == 0 ? std::nullopt : std::optional(BytesPerSecond{rate});
  }

 private:
  static constexpr std::size_t kBusy = 2;  // under way: one alone may wait for us
  static constexpr Bytes kEnough{256ull << 20}, kMemory{4ull << 30};

  std::size_t under_way_ = 0;
  Nanos since_, time_;
  Bytes bytes_;
  std::atomic<std::uint64_t> rate_{0};
};

}  // namespace spillway
