#include "timeline/level_log.h"

#include <algorithm>
#include <optional>

#include "memory/pieces.h"

namespace spillway {
namespace {

std::optional<Tier> tier_of(const PageTable& table, BlockId block) {
  switch (table.state(block)) {
    case BlockState::resident:
    case BlockState::clean:
    case BlockState::leaving:
      return Tier::device;
    case BlockState::stored:
    case BlockState::arriving:
      return table.lower(block);
    case BlockState::empty:
    case BlockState::in_pieces:
      break;
  }
  return std::nullopt;
}

}  // namespace

void LevelLog::begin(Nanos at, const PageTable& table) {
  begin_ = at;
  levels_.clear();
  peak_ = {};
  note(at, table);
}

void LevelLog::note(Nanos at, const PageTable& table) {
  TierLevel now{.at = at, .bytes = {}};
  for (const Tier tier : kTiers) {
    now.bytes[tier] = table.used(tier);
    peak_[tier] = std::max(peak_[tier], now.bytes[tier]);
  }
  if (!levels_.empty() && levels_.back().bytes == now.bytes) return;
  if (!levels_.empty() && levels_.back().at == at)
    levels_.back() = now;
  else
    levels_.push_back(now);
}

std::vector<TierLevel> LevelLog::levels() const {
  std::vector<TierLevel> levels = levels_;
  for (TierLevel& level : levels) level.at -= begin_;
  return thinned(levels, peak_);
}

PerTier<Bytes> places_of(const PageTable& table, BlockRange blocks, Bytes size) {
  PerTier<Bytes> found;
  const auto add = [&](BlockId block) {
    if (const auto tier = tier_of(table, block)) found[*tier] += table.bytes(block);
  };
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value) {
    if (!table.is_split(block)) {
      add(block);
      continue;
    }
    const BlockRange pieces = pieces_of(block);
    for (BlockId piece = pieces.first; piece < pieces.end(); ++piece.value)
      if (table.contains({piece, 1})) add(piece);
  }
  for (const Tier tier : kTiers) {
    found[tier] = std::min(found[tier], size);
    size -= found[tier];
  }
  return found;
}

}  // namespace spillway
