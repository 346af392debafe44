#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "base/ids.h"
#include "base/units.h"
#include "executor/machine.h"

namespace spillway {

// Which tensor leaves where whole tensors do: of those that suffice the one that was used least recently, else simply
// that one (Capuchin's passive mode as TENSILE section II describes it; IBM's Large Model Support). O(log n) a use.
class TensorVictims {
 public:
  explicit TensorVictims(Bytes least) : least_(least) {}

  // The tensor in these blocks is on the device and used now.
  void used(BlockRange blocks, Bytes bytes);
  // A block has come to the device, or has stayed there after all: its tensor may be a victim again.
  void arrived(BlockId block);
  void left(BlockRange blocks);  // or is about to
  void gone(BlockRange blocks);  // It is dead.
  // The victim for so many bytes; only of tensors that may leave. It has left then.
  std::optional<BlockRange> take(Bytes needed, const std::function<bool(BlockRange)>& may_leave);

 private:
  struct Tensor {
    BlockRange blocks;
    Bytes bytes;
    std::uint64_t used_at = 0;
    bool is_there = false;
  };
  static std::size_t class_of(Bytes bytes);  // those of a higher class are larger
  void put(Tensor& tensor, bool is_there);

  Bytes least_;
  std::uint64_t now_ = 0;
  std::map<BlockId, Tensor> tensors_;  // by first block
  // Of those that are there, by class and by when they were used.
  std::array<std::map<std::uint64_t, BlockId>, 65> by_use_;
};

}  // namespace spillway
