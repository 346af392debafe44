#include "machines/sim/flash.h"

#include "memory/pieces.h"

namespace spillway {

Flash::Flash(const FlashGeometry& geometry)
    : geometry_(geometry),
      ftl_({.superblocks = geometry.superblocks, .pages = geometry.pages, .reserve = geometry.reserve}) {}

// A page is no larger than a piece.
PageRun Flash::pages_of(BlockId id, Bytes bytes) const {
  const std::uint64_t page = geometry_.page.value;
  const std::uint64_t first = is_piece(id) ? kPieceBytes.value / page * place_in_block(id) : 0;
  return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>((bytes.value + page - 1) / page)};
}

bool Flash::place(BlockId id, Bytes bytes) { return ftl_.write(block_of(id), pages_of(id, bytes)).has_value(); }

std::optional<double> Flash::write(BlockId id, Bytes bytes) {
  const auto work = ftl_.write(block_of(id), pages_of(id, bytes));
  if (!work) return std::nullopt;
  work_ += *work;
  const auto bytes_of = [&](std::uint64_t pages) { return static_cast<double>((geometry_.page * pages).value); };
  return 1e9 *
         (bytes_of(work->written + work->moved) / geometry_.program_rate + bytes_of(work->moved) / geometry_.read_rate +
          seconds(geometry_.erase_time) * static_cast<double>(work->erased));
}

double Flash::read_ns(Bytes bytes) const { return 1e9 * static_cast<double>(bytes.value) / geometry_.read_rate; }

void Flash::discard(BlockId id, Bytes bytes) { ftl_.discard(block_of(id), pages_of(id, bytes)); }

}  // namespace spillway
