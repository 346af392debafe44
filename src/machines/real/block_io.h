#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "memory/tier.h"

namespace spillway {

// A block, or a part of one, on its way to or from a file. The memory stays as it is until the completion comes.
struct Transfer {
  std::uint32_t id = 0;
  bool write = false;
  std::byte* memory = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = kBlockBytes.value;
  std::vector<std::byte*> more = {};  // memory for what comes next in the file, as many bytes each
};
struct Completion {
  std::uint32_t id = 0;
  int error = 0;  // 0, or the errno of a transfer that did not happen as a whole
};

// The one place where the run loop waits: for transfers to end, for the bell, or for the time-out. Used by one thread.
// A port, so that tests can make transfers fail.
class BlockIo {
 public:
  virtual ~BlockIo() = default;
  static constexpr std::size_t kDepth = 64;

  virtual void start(const Transfer& transfer) = 0;  // Never blocks; at most kDepth may be under way.
  // Appends what has ended; blocks only if nothing has. Without a time-out it waits for the bell or a transfer.
  virtual Result<> wait(std::vector<Completion>& ended, std::optional<std::chrono::microseconds> timeout) = 0;
};

}  // namespace spillway
