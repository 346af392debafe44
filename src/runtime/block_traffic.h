#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "base/units.h"
#include "executor/observed_executor.h"

namespace spillway {

struct MovedBytes {
  Bytes all;         // from any tier to any other
  Bytes waited_for;  // of these, to the device when somebody waited for them already
  friend MovedBytes operator-(MovedBytes a, MovedBytes b) { return {a.all - b.all, a.waited_for - b.waited_for}; }
  MovedBytes& operator+=(MovedBytes other) {
    all += other.all;
    waited_for += other.waited_for;
    return *this;
  }
  friend bool operator==(MovedBytes, MovedBytes) = default;
};

// How often each block has moved: what moved of a tensor is its part of what moved of its blocks while it lived,
// whatever else lies in them. The run loop's thread counts; any thread may ask.
class BlockTraffic final : public Observer {
 public:
  BlockTraffic(std::uint32_t blocks, Bytes block_bytes)
      : blocks_(blocks), block_bytes_(block_bytes), counts_(new Counts[blocks]{}) {}

  // A move counts when it is done: many are called back. Clean ones down do not, though the machine writes what of them
  // it finds changed.
  void told(const Stamped& event) override;
  void asked(std::span<const Command> commands, const std::optional<Failure>& failure) override;

  // Of these bytes of the managed range, so far.
  MovedBytes moved(std::uint64_t offset, Bytes bytes) const;

 private:
  struct Counts {  // in pieces, as many as a block has of them where it can be split
    std::atomic<std::uint64_t> all{0}, waited_for{0};
  };
  struct UnderWay {
    BlockRange blocks;
    bool waited_for = false;
  };

  std::uint32_t blocks_;
  Bytes block_bytes_;
  std::unique_ptr<Counts[]> counts_;                       // by block
  std::unordered_map<std::uint32_t, UnderWay> under_way_;  // by move; the run loop's
};

}  // namespace spillway
