#include "runtime/block_traffic.h"

#include <algorithm>

#include "base/check.h"

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
  CHECK(move.blocks.end().value <= blocks_);
  for (BlockId block = move.blocks.first; block < move.blocks.end(); ++block.value) {
    counts_[block.value].all.fetch_add(1, std::memory_order_relaxed);
    if (move.waited_for) counts_[block.value].waited_for.fetch_add(1, std::memory_order_relaxed);
  }
}

MovedBytes BlockTraffic::moved(std::uint64_t offset, Bytes bytes) const {
  MovedBytes sum;
  const std::uint64_t end = offset + bytes.value;
  for (std::uint64_t at = offset; at < end;) {
    const std::uint64_t block = at / kBlockBytes.value;
    const std::uint64_t next = std::min(end, (block + 1) * kBlockBytes.value);
    const Bytes part{next - at};
    sum += {.all = part * counts_[block].all.load(std::memory_order_relaxed),
            .waited_for = part * counts_[block].waited_for.load(std::memory_order_relaxed)};
    at = next;
  }
  return sum;
}

}  // namespace spillway
