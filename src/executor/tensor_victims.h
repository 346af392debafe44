#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

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
  void gone(BlockRange blocks);  // It is dead, or has left.
  // The victim for so many bytes; only of tensors that may leave. It is gone then.
  std::optional<BlockRange> take(Bytes needed, const std::function<bool(BlockRange)>& may_leave);

 private:
  struct Tensor {
    BlockRange blocks;
    Bytes bytes;
    std::uint64_t used_at = 0;
  };
  static std::size_t class_of(Bytes bytes);  // those of a higher class are larger

  Bytes least_;
  std::uint64_t now_ = 0;
  std::unordered_map<BlockId, Tensor> tensors_;              // by first block
  std::array<std::map<std::uint64_t, BlockId>, 65> by_use_;  // by class: when it was used last
};

}  // namespace spillway
