#include <unistd.h>

#include <memory>
#include <new>
#include <utility>

#include "base/check.h"
#include "machines/cpu/copy_block.h"
#include "machines/cpu/cpu_machine.h"
#include "machines/real/clock.h"

// See Note [Pieces].
namespace spillway {

void CpuMachine::note_mapped(BlockId id, bool is_mapped) {
  if (is_piece(id))
    at(id).is_mapped = is_mapped;
  else
    mapped_[id.value].store(is_mapped, std::memory_order_relaxed);
}

// Whoever waits for the block, or for a piece of it, faults again.
void CpuMachine::look_again(BlockId id) {
  const Nanos at_once = now();
  stall_.end(id, at_once);
  const BlockRange pieces = pieces_of(id);
  for (BlockId piece = pieces.first; piece < pieces.end(); ++piece.value) stall_.end(piece, at_once);
  userfault_.wake(address(id), kBlockBytes.value);
}

void CpuMachine::handle(const Split& command) {
  Block& block = at(command.block);
  CHECK(block.state == BlockState::stored && block.lower == Tier::ssd && !pieces_.contains(command.block));
  auto pieces = std::make_unique<Pieces>();
  for (Block& piece : *pieces) {
    piece.state = BlockState::stored;
    piece.lower = Tier::ssd;
    piece.blank = block.blank;
  }
  pieces_.emplace(command.block, std::move(pieces));
  block.state = BlockState::in_pieces;
  block.blank = block.awaited = false;
  block.stored.reset();
  stats_.split();
  look_again(command.block);
}

void CpuMachine::handle(const Join& command) {
  Block& block = at(command.block);
  CHECK(block.state == BlockState::in_pieces);
  block.blank = end_pieces(command.block);
  CHECK(block.blank || block.has_slot);
  if (block.blank) give_back_slot(command.block);
  block.state = BlockState::stored;
  look_again(command.block);
}

// None is on the device or moves. True: none had bytes.
bool CpuMachine::end_pieces(BlockId id) {
  bool all_blank = true;
  for (const Block& piece : *pieces_.at(id)) {
    CHECK(piece.state == BlockState::empty || (piece.state == BlockState::stored && !piece.kept));
    all_blank &= piece.state == BlockState::empty || piece.blank;
  }
  pieces_.erase(id);
  mapper_->is_whole(address(id));
  return all_blank;
}

// For children, who see what is protected in memory and what nothing has written to in the slot.
bool CpuMachine::copy_pieces_to(std::uint32_t slot, BlockId id) {
  constexpr std::align_val_t kAligned{kPageBytes};  // The file takes no other buffers.
  const auto free = [](std::byte* memory) { ::operator delete(memory, kAligned); };
  const std::unique_ptr<std::byte, decltype(free)> buffer(
      static_cast<std::byte*>(::operator new(kBlockBytes.value, kAligned)), free);
  std::byte* const bytes = buffer.get();
  const BlockRange pieces = pieces_of(id);
  for (BlockId one = pieces.first; one < pieces.end(); ++one.value) {
    const Block& piece = at(one);
    std::byte* to = bytes + offset_in_block(one);
    if (piece.blank || piece.state == BlockState::empty) continue;
    if (is_mapped(one) || (piece.buffer != nullptr && piece.state != BlockState::arriving)) {
      copy_block(to, is_mapped(one) ? address(one) : piece.buffer, kPieceBytes.value);
      continue;
    }
    CHECK(at(id).has_slot);
    const auto from = static_cast<off_t>(at(id).slot * kBlockBytes.value + offset_in_block(one));
    if (::pread(file_.fd(), to, kPieceBytes.value, from) != static_cast<ssize_t>(kPieceBytes.value)) return false;
  }
  return ::pwrite(file_.fd(), bytes, kBlockBytes.value, static_cast<off_t>(slot * kBlockBytes.value)) ==
         static_cast<ssize_t>(kBlockBytes.value);
}

}  // namespace spillway
