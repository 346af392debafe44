#include <utility>

#include "base/check.h"
#include "machines/cpu/cpu_machine.h"
#include "machines/real/clock.h"

// See Note [Forked children].
namespace spillway {

static_assert(2 * UnderWay::kMost + ChildServer::kMostTransfers <= BlockIo::kDepth);

KeptBlocks::Port CpuMachine::port_for_children() {
  return {.place = [this](BlockId id) { return place_of(id); },
          .protect = [this](BlockId id) { return protect_for_children(id); },
          .is_in_pieces = [this](BlockId id) { return pieces_.contains(id); },
          .copy_to_slot = [this](BlockId id, std::uint32_t slot) { return copy_pieces_to(slot, id); },
          .take_slot = [this] { return take_slot(); },
          .give_back_slot = [this](std::uint32_t slot) { file_.give_back(slot); },
          .slot_is_ours =
              [this](BlockId id) {
                CHECK(at(id).has_slot);
                at(id).has_slot = false;
                at(id).stored.reset();
                --ssd_in_use_;
              },
          .free_frame = [this](std::byte* frame) { free_host_frame(frame); },
          .start = [this](const Transfer& transfer) { io_->start(transfer); }};
}

KeptBlocks::Found CpuMachine::protect_for_children(BlockId id) {
  const Block& block = at(id);
  const auto protect = [&](BlockId one) {
    return !is_mapped(one) || userfault_.protect(address(one), size(one), true) == 0;
  };
  bool is_protected = protect(id);
  bool any_mapped = is_mapped(id);
  const BlockRange pieces = pieces_of(id);
  for (BlockId piece = pieces.first; block.state == BlockState::in_pieces && piece < pieces.end(); ++piece.value) {
    any_mapped |= is_mapped(piece);
    is_protected &= protect(piece);
  }
  // Another thread has made a tensor in its frame, and that is told after the fork.
  const bool is_new = any_mapped && !knows_allocations(id);
  const bool has_none = tensors(id) == 0 || block.state == BlockState::empty || block.blank;
  return {.is_somebodys = !has_none || is_new, .is_protected = is_protected};
}

KeptBlocks::Place CpuMachine::place_of(BlockId id) const {
  const Block& block = blocks_[id.value];
  if (is_mapped(id)) return {.bytes = address(id)};
  const bool is_being_read = block.state == BlockState::arriving && block.lower == Tier::ssd;
  if (block.buffer != nullptr && !is_being_read) return {.bytes = block.buffer};
  CHECK(block.has_slot);
  return {.slot = block.slot};
}

// To be called before the block can change, or its bytes go. False: only later, when children need it no more; a
// transfer ends then.
bool CpuMachine::keep_for_children(BlockId id) {
  const bool is_kept = children_.keep(block_of(id));
  note_usage();
  return is_kept;
}

// Somebody waits to write to a block that is protected for the sake of children, or was. Whether it goes on now.
bool CpuMachine::let_write(BlockId id) {
  if (!keep_for_children(id)) return false;
  if (const int error = userfault_.protect(address(id), size(id), false); error != 0)
    fail_for_good("let the script write to a block again", error);
  stall_.end(id, now());
  userfault_.wake(address(id), size(id));
  return true;
}

void CpuMachine::let_writers_go_on() {
  while (!awaiting_write_.empty()) {
    const BlockId id = awaiting_write_.front();
    if (!is_mapped(id))
      userfault_.wake(address(id), size(id));  // It has left meanwhile: they must ask for its return now.
    else if (!let_write(id))
      return;
    awaiting_write_.pop_front();
  }
}

}  // namespace spillway
