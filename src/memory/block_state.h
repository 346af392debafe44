#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace spillway {

// Where a block's bytes are. `lower` below is the host or SSD tier that has a copy, or that the block is on its way to
// or from.
enum class BlockState : std::uint8_t {
  empty,      // no bytes anywhere: never touched, or dead and dropped
  resident,   // on the device, and only there
  clean,      // on the device, and the same bytes on a lower tier, too
  leaving,    // on its way down: the device's copy is the valid one until the lower copy is durable
  stored,     // on a lower tier, and only there
  arriving,   // on its way up: the lower copy is the valid one until it is mapped
  in_pieces,  // its pieces have states of their own; the lower tier has room for all of it
};

enum class BlockEvent : std::uint8_t {
  populate,      // the first touch: a frame without contents
  evict,         // a move down begins
  evicted,       // it has ended; the device's frame is free
  kept,          // it failed or was cancelled
  fetch,         // a move up begins
  fetched,       // it has ended; the lower copy is given up
  copied,        // it has ended; the lower copy stays
  drop_copy,     // the lower copy is not wanted, or not the same bytes, any more
  fetch_failed,  // the bytes are still below
  drop,          // nobody will read the bytes again
  split,         // its pieces have states from now on
  join,          // none of them is on the device or moves: it is one again
};

// Whether a kernel can use it, and it can leave.
constexpr bool on_device(BlockState state) { return state == BlockState::resident || state == BlockState::clean; }

// The one rule by which a block changes state; every machine goes through it.
constexpr std::optional<BlockState> next(BlockState state, BlockEvent event) {
  using enum BlockState;
  using enum BlockEvent;
  struct Rule {
    BlockState from;
    BlockEvent event;
    BlockState to;
  };
  constexpr std::array kRules{
      Rule{empty, populate, resident}, Rule{resident, evict, leaving},       Rule{leaving, evicted, stored},
      Rule{leaving, kept, resident},   Rule{stored, fetch, arriving},        Rule{arriving, fetched, resident},
      Rule{arriving, copied, clean},   Rule{arriving, fetch_failed, stored}, Rule{clean, drop_copy, resident},
      Rule{clean, evict, leaving},     Rule{resident, drop, empty},          Rule{stored, drop, empty},
      Rule{stored, split, in_pieces},  Rule{in_pieces, join, stored},        Rule{in_pieces, drop, empty},
  };
  for (const Rule& rule : kRules)
    if (rule.from == state && rule.event == event) return rule.to;
  return std::nullopt;
}
// A block's only copy is never dropped while it moves, and a move never starts twice.
static_assert(!next(BlockState::leaving, BlockEvent::drop) && !next(BlockState::arriving, BlockEvent::drop));
static_assert(!next(BlockState::leaving, BlockEvent::evict) && !next(BlockState::arriving, BlockEvent::fetch));

}  // namespace spillway
