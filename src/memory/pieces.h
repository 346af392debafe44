#pragma once

#include <cstdint>

#include "base/ids.h"
#include "memory/tier.h"

namespace spillway {

// Note [Pieces]
// A kernel that uses more than the device comes back to blocks that have left meanwhile, and mostly for a few bytes of
// each. Such a block is split: from then on each piece of it is on the device or not by itself, until no kernel runs
// any more that ran then, and somebody wants it whole.
//
// Pieces have ids beside those of blocks, so that whatever moves, pins or waits for a block can do so with a piece. Ids
// of neighbours are neighbours, those of two blocks too. Only what the SSD holds is split, and goes on having its slot
// there until the block is whole again: so a piece always has a place to go, and what is read only leaves at no cost.
inline constexpr Bytes kPieceBytes = 16_KiB;
inline constexpr std::uint32_t kPiecesPerBlock = kBlockBytes.value / kPieceBytes.value;
inline constexpr std::uint32_t kFirstPiece = std::uint32_t{1} << 31;
inline constexpr std::uint32_t kMostBlocks = kFirstPiece / kPiecesPerBlock - 1;

constexpr bool is_piece(BlockId id) { return id.value >= kFirstPiece; }
// Which block a piece is of; a block is its own.
constexpr BlockId block_of(BlockId id) {
  return is_piece(id) ? BlockId{(id.value - kFirstPiece) / kPiecesPerBlock} : id;
}
// Its place in that block.
constexpr std::uint32_t place_in_block(BlockId piece) {
  CHECK(is_piece(piece));
  return (piece.value - kFirstPiece) % kPiecesPerBlock;
}
constexpr BlockRange pieces_of(BlockId block) {
  CHECK(block.value < kMostBlocks);
  return {{kFirstPiece + block.value * kPiecesPerBlock}, kPiecesPerBlock};
}

}  // namespace spillway
