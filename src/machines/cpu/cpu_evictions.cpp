#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "machines/cpu/cpu_machine.h"
#include "machines/real/clock.h"

namespace spillway {
namespace {

// A dead block that cannot be taken off is looked at again so often before another one must leave in its place.
constexpr std::uint32_t kTriesOfKept = 8;

}  // namespace

void CpuMachine::handle(const Move& move) {
  CHECK(move.blocks.count > 0 && !jobs_.contains(move.id.value));
  CHECK((move.from == Tier::device) != (move.to == Tier::device));
  Job& job = jobs_[move.id.value];
  job.move = move;
  for (BlockId id = move.blocks.first; id < move.blocks.end(); ++id.value) {
    const BlockState state = at(id).state;
    CHECK(move.from == Tier::device ? state == BlockState::resident
                                    : state == BlockState::stored && at(id).lower == move.from);
    at(id).job = move.id.value;
  }
  if (move.from == Tier::device)
    begin_eviction(job);
  else
    begin_arrival(job);
}

void CpuMachine::begin_eviction(Job& job) {
  const BlockRange blocks = job.move.blocks;
  // Frames of what has died in host memory may still be written for children.
  const bool has_room_below = job.move.to != Tier::host || host_in_use_ + blocks.count <= options_.host_frames;
  job.refusal = has_room_below ? take_all_off(job) : EAGAIN;
  if (job.refusal != 0) return come_back(job);
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    Block& block = at(id);
    block.lower = job.move.to;
    job.blank += block.blank;
    if (job.move.to == Tier::host) {
      block.state = BlockState::stored;
      if (block.blank) continue;
      block.buffer = mapper_->keep_in_host(address(id), block.buffer);
      CHECK(block.buffer != nullptr);
      device_in_use_ -= kBlockBytes;
      ++host_in_use_;
      continue;
    }
    block.state = BlockState::leaving;
    if (!is_piece(id)) copies_.erase(id);
    if (block.blank) continue;
    if (job.move.clean && has_current_copy(id)) {
      ++job.dropped;
    } else {
      writes_.push(id, job.move.urgency);
      ++job.rest;
    }
  }
  note_usage();
  if (job.rest > 0) return;
  job.move.to == Tier::host ? answer(job, true) : finish_write(job);
}

// See Note [Clean copies].
bool CpuMachine::has_current_copy(BlockId id) {
  const Block& block = at(id);
  const bool current = block.stored && content_hash(block.buffer, size(id)) == *block.stored;
  if (home(id).has_slot && !current && !block.was_in_the_making) stats_.found_unseen_write();
  return current;
}

// 0 or an errno; all must come back then.
int CpuMachine::take_all_off(Job& job) {
  while (job.off < job.move.blocks.count) {
    const BlockId id{job.move.blocks.first.value + job.off};
    if (const int error = take_off(id); error != 0) return error;
    ++job.off;
    if (lives_again(id)) return EAGAIN;
  }
  return 0;
}

// 0 or an errno.
int CpuMachine::take_off(BlockId id) {
  if (at(id).blank) {
    std::erase(awaiting_frame_, id);
    userfault_.wake(address(id), size(id));  // Whoever waits for it must ask for its return now.
    return 0;
  }
  if (is_parked(at(id))) return 0;
  note_mapped(id, false);
  bool came_back = false;
  const int error = mapper_->take_off(address(id), size(id), at(id).buffer, came_back);
  if (came_back) children_.lose(block_of(id));  // Anybody may have written to it.
  if (error != 0) {
    note_mapped(id, true);
    return error;
  }
  // A page that is swapped out takes its protection along, and a frame must have none.
  if (children_.has_forked() && at(id).buffer != address(id)) userfault_.protect(at(id).buffer, size(id), false);
  return 0;
}

// Where blocks are copied off their place, who reads them does not fault. What children may want is taken off once.
void CpuMachine::handle(const Timer&) { CHECK(false && "no run follows a plan with delays"); }

void CpuMachine::handle(const Park& command) {
  const BlockId id = command.block;
  CHECK(at(id).state == BlockState::resident);
  if (options_.method == EvictionMethod::copy || at(id).blank || at(id).kept || is_parked(at(id))) return;
  if (children_.has_forked()) return;
  if (const int error = take_off(id); error != 0) return refused(error);
  if (lives_again(id)) CHECK(put_back(id));
}

// Of a block that has been taken off. See Note [A dead block that lives again].
bool CpuMachine::lives_again(BlockId id) {
  if (at(id).blank || knows_allocations(block_of(id))) return false;
  bell_.ring();  // The allocation is told next.
  return true;
}

// False: not before its bytes are kept for children.
bool CpuMachine::put_back(BlockId id) {
  Block& block = at(id);
  if (block.blank) {
    awaiting_frame_.push_back(id);
    return true;
  }
  // One that never left its place stays protected: who writes to it asks.
  const bool stays_protected = block.buffer == address(id) && children_.wants(block_of(id));
  if (!stays_protected) {
    if (!keep_for_children(id)) return false;
    if (const int error = mapper_->put_back(address(id), size(id), block.buffer); error != 0) {
      fail_for_good("put a block back that was to leave", error);
      return true;
    }
  }
  block.buffer = nullptr;
  mapped(id);
  return true;
}

// False: not all yet.
bool CpuMachine::put_back(Job& job) {
  for (; job.settled < job.off; ++job.settled)
    if (!put_back({job.move.blocks.first.value + job.settled})) return false;
  return true;
}

// The move is not done, and the executor hears of that as soon as its blocks are where they were.
void CpuMachine::come_back(Job& job) {
  CHECK(!job.is_returning && job.settled <= job.off);
  job.is_returning = true;
  for (BlockId id = job.move.blocks.first; id < job.move.blocks.end(); ++id.value) {
    give_back_slot(id);
    at(id).state = BlockState::leaving;
  }
  if (!end_return(job)) returning_.push_back(job.move.id.value);
}

bool CpuMachine::end_return(Job& job) {
  if (!put_back(job)) return false;
  for (BlockId id = job.move.blocks.first; id < job.move.blocks.end(); ++id.value) {
    at(id).state = BlockState::resident;
    if (is_parked(at(id))) userfault_.wake(address(id), size(id));  // Whoever waits for it has it put back now.
  }
  if (job.refusal == 0) {
    answer(job, false);
  } else {
    refused(job.refusal);
    refuse(job);
  }
  return true;
}

void CpuMachine::start_writes() {
  while (!writes_.empty() && writing_.may_start(writes_.urgency())) {
    const BlockId id = writes_.front();
    Block& block = home(id);
    if (!block.has_slot) {  // A copy that is not current any more is written over.
      const auto slot = take_slot();
      if (!slot) return send_back_writes();
      block.slot = *slot;
      block.has_slot = true;
      ++ssd_in_use_;
    } else if (is_piece(id)) {
      children_.slot_is_taken(block.slot);
    }
    start_transfer(writes_, true);
  }
}

// All in use has its space reserved, in memory and on the SSD together: without a slot left there is room elsewhere, on
// the device or, by now, in host memory. Arrivals under way give slots back; if there are none, the executor chooses
// again.
void CpuMachine::send_back_writes() {
  while (!writes_.empty() && writing_.count() == 0 && reading_.count() == 0 && chunks_.empty()) {
    Job& job = jobs_.at(at(writes_.front()).job);
    for (BlockId id = job.move.blocks.first; id < job.move.blocks.end(); ++id.value) writes_.erase(id);
    job.refusal = ENOSPC;
    come_back(job);
  }
}

void CpuMachine::finish_write(Job& job) {
  const Move& move = job.move;
  CHECK(job.rest == 0);
  if (job.error != 0 || job.cancelled) return come_back(job);
  for (BlockId id = move.blocks.first; id < move.blocks.end(); ++id.value) {
    Block& block = at(id);
    block.state = BlockState::stored;
    if (block.blank) continue;
    CHECK(home(id).has_slot);
    mapper_->let_go(address(id), size(id), std::exchange(block.buffer, nullptr));
    device_in_use_ -= Bytes{size(id)};
  }
  answer(job, true);
}

void CpuMachine::handle(const Cancel& command) {
  const auto found = jobs_.find(command.move.value);
  if (found == jobs_.end()) return;  // Too late: the answer is on its way.
  Job& job = found->second;
  if (job.move.from != Tier::device || job.cancelled || job.is_returning) return;
  job.cancelled = true;
  for (BlockId id = job.move.blocks.first; id < job.move.blocks.end(); ++id.value) job.rest -= writes_.erase(id);
  // A block that is copied stays where it is; one that is moved comes back when the kernel has let go of it.
  if (options_.method == EvictionMethod::copy) CHECK(put_back(job));
  if (job.rest == 0) finish_write(job);
}

void CpuMachine::handle(const Discard& command) {
  for (BlockId id = command.blocks.first; id < command.blocks.end(); ++id.value) {
    Block& block = at(id);
    if (command.tier == Tier::ssd && block.state == BlockState::resident) {  // A copy.
      give_back_slot(id);
      continue;
    }
    CHECK(tensors(block_of(id)) == 0);
    if (block.state == BlockState::in_pieces) {
      CHECK(keep_for_children(id));  // What has not changed since they were forked has not been kept.
      end_pieces(id);
      block.state = BlockState::empty;
      give_back_slot(id);
      look_again(id);
      continue;
    }
    if (command.tier != Tier::device) {
      CHECK(block.state == BlockState::stored && block.lower == command.tier);
      const bool has_frame = !std::exchange(block.blank, false) && command.tier == Tier::host;
      if (has_frame)
        children_.take_frame(id, std::exchange(block.buffer, nullptr));
      else
        CHECK(keep_for_children(id));
      block.state = BlockState::empty;
      give_back_slot(id);
      continue;
    }
    CHECK(block.state == BlockState::resident && !block.kept);
    if (block.blank) {  // Who waits for it is an accident of the script's: nobody owns these bytes.
      CHECK(take_off(id) == 0);
      block.blank = false;
      block.state = BlockState::empty;
    } else if (!try_discard(id)) {
      block.kept = true;
      block.kept_reported = is_piece(id);
      block.kept_tries = 0;
      kept_.push_back(id);
      if (is_piece(id)) answers_.push_front(Faulted{kNobody, {id, 1}});
    }
  }
  note_usage();
}

// See Note [A dead block that lives again].
bool CpuMachine::try_discard(BlockId id) {
  if (!keep_for_children(id)) return false;
  Block& block = at(id);
  int error = take_off(id);
  if (error == 0 && lives_again(id)) {
    CHECK(put_back(id));
    error = EAGAIN;
  }
  if (error != 0) {
    refused(error);
    return false;
  }
  mapper_->let_go(address(id), size(id), std::exchange(block.buffer, nullptr));
  block.state = BlockState::empty;
  device_in_use_ -= Bytes{size(id)};
  return true;
}

void CpuMachine::free_host_frame(std::byte* frame) {
  mapper_->free_host_frame(frame);
  --host_in_use_;
}

void CpuMachine::settle_kept() {
  std::erase_if(kept_, [&](BlockId id) {
    Block& block = at(id);
    if (block.kept_reported || !knows_allocations(id)) return false;
    if (tensors(id) == 0 && !keep_for_children(id)) return false;  // That is no refusal.
    if (tensors(id) == 0 && try_discard(id)) {
      block.kept = false;
      return true;
    }
    if (tensors(id) == 0 && ++block.kept_tries < kTriesOfKept) return false;
    block.kept_reported = true;
    answers_.push_back(Faulted{kNobody, {id, 1}});
    return false;
  });
}

// Nothing moves, and there is less room than the executor believes: it has been told of the blocks that live again, and
// has frames for them as soon as those of this arrival are free.
void CpuMachine::refuse_arrival() {
  if (!answers_.empty() || is_moving() || !chunks_.empty()) return;
  if (std::ranges::none_of(kept_, [&](BlockId id) { return at(id).kept_reported; })) return;
  if (awaiting_map_.empty() && reads_.empty()) return;
  Job& job = jobs_.at(awaiting_map_.empty() ? at(reads_.front()).job : awaiting_map_.front());
  if (job.has_frames) return;
  CHECK(job.settled == 0);
  awaiting_map_.empty() ? reads_.pop() : awaiting_map_.pop_front();
  for (BlockId id = job.move.blocks.first; id < job.move.blocks.end(); ++id.value) at(id).state = BlockState::stored;
  refuse(job);
}

// What is promised counts a block in memory or on the SSD. One in pieces has its slot while some of them are on the
// device: then there must be more.
std::optional<std::uint32_t> CpuMachine::take_slot() {
  constexpr std::uint32_t kMore = 16;
  constexpr Nanos kBetweenRefusals{1'000'000'000};  // A disk that is full has been full to its last byte for a moment.
  const bool wants_more = copies_.empty() && !file_.has_free_slot() && !pieces_.empty();
  if (wants_more && (!no_space_ || now() - asked_for_space_ >= kBetweenRefusals)) {
    const std::uint32_t have = file_.reserved_slots(), most = file_.capacity_slots();
    asked_for_space_ = now();
    no_space_.reset();
    if (have < most)
      if (auto more = file_.reserve(std::min(have + kMore, most)); !more) no_space_ = more.error();
  }
  const auto slot = copies_.empty() || file_.has_free_slot() ? file_.take() : take_slot_of_copy();
  if (slot) children_.slot_is_taken(*slot);
  return slot;
}

std::uint32_t CpuMachine::take_slot_of_copy() {
  Block& block = at(*copies_.begin());
  copies_.erase(copies_.begin());
  CHECK(block.has_slot && block.state == BlockState::resident);
  block.has_slot = false;
  block.stored.reset();
  --ssd_in_use_;
  return block.slot;
}

// A piece only forgets what is in its part of it.
void CpuMachine::give_back_slot(BlockId id) {
  Block& block = at(id);
  if (is_piece(id)) return block.stored.reset();
  if (!block.has_slot) return;
  copies_.erase(id);
  file_.give_back(block.slot);
  block.has_slot = false;
  block.stored.reset();
  --ssd_in_use_;
}

}  // namespace spillway
