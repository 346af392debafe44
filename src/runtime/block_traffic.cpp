#include "runtime/block_traffic.h"

#include <algorithm>

#include "base/check.h"
#include "memory/pieces.h"

namespace spillway {

void BlockTraffic::asked(std::span<const Command> commands, const std::optional<Failure>&) {
  for (const Command& command : commands)
    if (const auto* move = std::get_if<Move>(&command); move && !(move->clean && move->from == Tier::device))
      under_way_.insert_or_assign(
          move->id.value,
          UnderWay{.blocks = move->blocks, .waited_for = move->to == Tier::device && move->urgency != Urgency::plan});
}

void BlockTraffic::told(const Stamped& event) {
  if (const auto* failed = std::get_if<MoveFailed>(&event.what)) under_way_.erase(failed->move.value);
  const auto* done = std::get_if<MoveDone>(&event.what);
  if (done == nullptr) return;
  const auto found = under_way_.find(done->move.value);
  if (found == under_way_.end()) return;
  const UnderWay move = found->second;
  under_way_.erase(found);
  const std::uint32_t pieces = is_piece(move.blocks.first) ? 1 : kPiecesPerBlock;
  for (BlockId id = move.blocks.first; id < move.blocks.end(); ++id.value) {
    const BlockId block = block_of(id);
    CHECK(block.value < blocks_);
    counts_[block.value].all.fetch_add(pieces, std::memory_order_relaxed);
    if (move.waited_for) counts_[block.value].waited_for.fetch_add(pieces, std::memory_order_relaxed);
  }
}

MovedBytes BlockTraffic::moved(std::uint64_t offset, Bytes bytes) const {
  MovedBytes sum;
  const std::uint64_t end = offset + bytes.value;
  for (std::uint64_t at = offset; at < end;) {
    const std::uint64_t block = at / block_bytes_.value;
    const std::uint64_t next = std::min(end, (block + 1) * block_bytes_.value);
    const auto part = [&](const std::atomic<std::uint64_t>& pieces) {
      return Bytes{(next - at) * pieces.load(std::memory_order_relaxed) / kPiecesPerBlock};
    };
    sum += {.all = part(counts_[block].all), .waited_for = part(counts_[block].waited_for)};
    at = next;
  }
  return sum;
}

}  // namespace spillway
