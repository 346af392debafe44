#pragma once

#include <algorithm>
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
    if (under_way_ > 0) {
      stretch_.bytes += ended;
      stretch_.time += at - since_;
      was_stopped_ |= at - since_ > kStopped;
    }
    under_way_ = under_way;
    since_ = at;
    most_ = std::max(most_, under_way);
    if (under_way > 0 && stretch_.bytes < kStretch) return;
    if (most_ > 1 && !was_stopped_) count();  // One at a time may have waited for us.
    stretch_ = {};
    most_ = under_way;
    was_stopped_ = false;
  }
  // Nothing before enough has moved to tell.
  std::optional<BytesPerSecond> rate() const {
    const std::uint64_t rate = rate_.load(std::memory_order_relaxed);
    return rate == 0 ? std::nullopt : std::optional(BytesPerSecond{rate});
  }

 private:
  struct Sum {
    Bytes bytes;
    Nanos time;
  };
  // A stretch ends when nothing is under way, or so much has moved.
  static constexpr Bytes kStretch{64ull << 20}, kEnough{256ull << 20}, kMemory{4ull << 30};
  static constexpr Nanos kStopped{1'000'000'000};  // If nothing ends for so long it was not for the disk's speed.

  void count() {
    counted_.bytes += stretch_.bytes;
    counted_.time += stretch_.time;
    if (counted_.bytes < kEnough || counted_.time == Nanos{}) return;
    rate_.store(static_cast<std::uint64_t>(static_cast<double>(counted_.bytes.value) / seconds(counted_.time)),
                std::memory_order_relaxed);
    if (counted_.bytes > kMemory) counted_ = {{counted_.bytes.value / 2}, {counted_.time.value / 2}};
  }

  std::size_t under_way_ = 0, most_ = 0;
  Nanos since_;
  Sum stretch_, counted_;
  bool was_stopped_ = false;  // in this stretch: the process, or the disk
  std::atomic<std::uint64_t> rate_{0};
};

}  // namespace spillway
