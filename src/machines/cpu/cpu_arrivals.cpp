#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "machines/cpu/cpu_machine.h"
#include "machines/real/clock.h"

namespace spillway {
namespace {

constexpr std::uint32_t kTries = 4;

}  // namespace

void CpuMachine::handle(const Populate& command) {
  for (BlockId id = command.blocks.first; id < command.blocks.end(); ++id.value) {
    Block& block = at(id);
    if (block.kept) {  // Its frame was never given up.
      block.kept = false;
      std::erase(kept_, id);
      continue;
    }
    CHECK(block.state == BlockState::empty);
    block.state = BlockState::resident;
    block.blank = true;
    awaiting_frame_.push_back(id);
  }
  populate_waiting();
}

void CpuMachine::populate_waiting() {
  while (!awaiting_frame_.empty() && has_room(Bytes{size(awaiting_frame_.front())})) {
    const BlockId id = awaiting_frame_.front();
    awaiting_frame_.pop_front();
    CHECK(at(id).blank);
    device_in_use_ += Bytes{size(id)};
    waited_.reset();
    if (!give_first_frame(id)) return;
  }
  note_usage();
}

bool CpuMachine::give_first_frame(BlockId id) {
  at(id).blank = false;
  if (const int error = mapper_->populate(address(id), size(id)); error != 0) {
    fail_for_good("map a new block", error);
    return false;
  }
  mapped(id);
  return true;
}

void CpuMachine::begin_arrival(Job& job) {
  const Move& move = job.move;
  for (BlockId id = move.blocks.first; id < move.blocks.end(); ++id.value) at(id).state = BlockState::arriving;
  if (move.from == Tier::ssd) return reads_.push(move.blocks.first, move.urgency);
  if (!map_from_host(job)) awaiting_map_.push_back(move.id.value);
}

// All of them, for what has begun to arrive cannot be refused any more.
bool CpuMachine::take_frames(Job& job) {
  if (job.has_frames) return true;
  if (!has_room(bytes_of(job.move.blocks))) return false;
  device_in_use_ += bytes_of(job.move.blocks);
  return job.has_frames = true;
}

// False: it waits for frames, or until what children want is kept.
bool CpuMachine::map_from_host(Job& job) {
  if (!take_frames(job)) return false;
  for (; job.settled < job.move.blocks.count; ++job.settled) {
    const BlockId id{job.move.blocks.first.value + job.settled};
    if (at(id).blank) {
      at(id).state = BlockState::resident;
      if (!give_first_frame(id)) return true;
      ++job.blank;
      continue;
    }
    if (!keep_for_children(id)) return false;
    if (const int error = mapper_->map_from_host(address(id), std::exchange(at(id).buffer, nullptr)); error != 0) {
      fail_for_good("map a block from host memory", error);
      return true;
    }
    mapped(id);
    at(id).state = BlockState::resident;
    --host_in_use_;
  }
  note_usage();
  answer(job, true);
  return true;
}

void CpuMachine::start_reads() {
  for (;;) {
    while (!chunks_.empty() && reading_.may_start(chunks_.urgency())) start_transfer(chunks_, false);
    // What is in hand comes before what is not more urgent.
    if (reads_.empty() || (!chunks_.empty() && chunks_.urgency() <= reads_.urgency())) return;
    Job& job = jobs_.at(at(reads_.front()).job);
    if (!reading_.may_start(reads_.urgency()) || !start_chunk(job)) return;
    reads_.pop();
    if (job.rest == 0) finish_chunk(job);
  }
}

// Of the first in the queue; with the pieces of its block and move that follow there and in the block.
void CpuMachine::start_transfer(TransferQueue& queue, bool write) {
  const BlockId id = queue.front();
  Block& block = at(id);
  CHECK(home(id).has_slot && block.transferring == 0);
  Transfer transfer{.id = id.value,
                    .write = write,
                    .memory = block.buffer,
                    .offset = home(id).slot * kBlockBytes.value + offset_in_block(id),
                    .bytes = size(id)};
  queue.pop();
  for (BlockId next = id; is_piece(id) && !queue.empty() && queue.front() == BlockId{++next.value}; queue.pop()) {
    if (block_of(next) != block_of(id) || at(next).job != block.job) break;
    transfer.more.push_back(at(next).buffer);
    if (write) at(next).stored.reset();
  }
  if (write) block.stored.reset();
  block.transferring = 1 + static_cast<std::uint32_t>(transfer.more.size());
  (write ? writing_ : reading_).starts(jobs_.at(block.job).move.urgency);
  (write ? stats_.writes : stats_.reads).note((write ? writing_ : reading_).count(), {}, now());
  io_->start(transfer);
}

// A chunk gets all its buffers at once: two that each wait for the other's would wait for ever.
bool CpuMachine::start_chunk(Job& job) {
  const std::uint32_t rest = job.move.blocks.count - job.settled;
  const std::uint32_t chunk = std::min(rest, mapper_->arrival_buffers(job.move.urgency, size(job.move.blocks.first)));
  if (chunk == 0) return false;
  if (!take_frames(job)) return false;
  job.chunk = chunk;
  for (std::uint32_t index = 0; index < chunk; ++index) {
    const BlockId id{job.move.blocks.first.value + job.settled + index};
    Block& block = at(id);
    if (block.blank) continue;
    block.buffer = mapper_->arrival_buffer(size(id));
    if (block.buffer == nullptr) {
      fail_for_good("get memory for a block that comes back", ENOMEM);
      return false;
    }
    ++job.rest;
    chunks_.push(id, job.move.urgency);
  }
  note_usage();
  return true;
}

void CpuMachine::finish_chunk(Job& job) {
  CHECK(job.chunk > 0 && job.settled + job.chunk <= job.move.blocks.count);
  const BlockRange chunk{{job.move.blocks.first.value + job.settled}, job.chunk};
  if (job.error != 0) {
    for (BlockId id = chunk.first; id < chunk.end(); ++id.value)
      if (!at(id).blank) mapper_->free_buffer(size(id), std::exchange(at(id).buffer, nullptr));
    if (job.settled > 0 && ++job.retries < kTries) {  // What has arrived cannot be undone.
      job.error = 0;
      return reads_.push({job.move.blocks.first.value + job.settled}, job.move.urgency);
    }
    if (job.settled > 0) return fail_for_good("read the rest of a tensor back from the SSD", job.error);
    device_in_use_ -= bytes_of(job.move.blocks);
    for (BlockId id = job.move.blocks.first; id < job.move.blocks.end(); ++id.value) at(id).state = BlockState::stored;
    return answer(job, false);
  }
  for (BlockId id = chunk.first; id < chunk.end(); ++id.value) {
    Block& block = at(id);
    if (block.blank) {
      block.state = BlockState::resident;
      if (!give_first_frame(id)) return;
      ++job.blank;
      continue;
    }
    CHECK(keep_for_children(id));  // Its slot is kept, if anything.
    if (job.move.clean && home(id).has_slot) {
      if (!block.stored) block.stored = content_hash(block.buffer, size(id));
      block.was_in_the_making = is_in_the_making(block_of(id));
      if (!is_piece(id)) copies_.insert(id);
    } else {
      give_back_slot(id);
    }
    block.state = BlockState::resident;
    if (const int error = mapper_->map(address(id), size(id), std::exchange(block.buffer, nullptr)); error != 0)
      return fail_for_good("map a block that has come back", error);
    mapped(id);
  }
  job.settled += job.chunk;
  job.retries = 0;
  if (job.settled == job.move.blocks.count) return answer(job, true);
  reads_.push({job.move.blocks.first.value + job.settled}, job.move.urgency);
}

// Whoever waits for the block finds its wait counted when it goes on.
void CpuMachine::mapped(BlockId id) {
  at(id).awaited = false;
  note_mapped(id, true);
  stall_.end(id, now());
  userfault_.wake(address(id), size(id));
}

void CpuMachine::transfer_ended(const Completion& completion) {
  if (completion.id >= range_.blocks() && !is_piece({completion.id})) return children_.ended(completion);
  Block& block = at({completion.id});
  CHECK(block.transferring > 0 && (block.state == BlockState::leaving || block.state == BlockState::arriving));
  const std::uint32_t count = std::exchange(block.transferring, 0);
  Job& job = jobs_.at(block.job);
  const bool write = job.move.to == Tier::ssd;
  const Bytes bytes = bytes_of({{completion.id}, count});
  (write ? writing_ : reading_).ends(job.move.urgency);
  (write ? stats_.writes : stats_.reads)
      .note((write ? writing_ : reading_).count(), completion.error == 0 ? bytes : Bytes{}, now());
  if (write && completion.error == 0) stats_.wrote(bytes);
  if (completion.error != 0) {
    job.error = completion.error;
    stats_.transfer_failed(completion.error);
  }
  CHECK(job.rest >= count);
  job.rest -= count;
  if (job.rest > 0) return;
  write ? finish_write(job) : finish_chunk(job);
}

void CpuMachine::pump() {
  let_writers_go_on();
  while (!returning_.empty() && end_return(jobs_.at(returning_.front()))) returning_.pop_front();
  populate_waiting();
  while (!awaiting_map_.empty() && map_from_host(jobs_.at(awaiting_map_.front()))) awaiting_map_.pop_front();
  start_reads();  // First, since each gives back a slot that a write may be short of.
  start_writes();
}

// The job is over and gone afterwards.
void CpuMachine::answer(const Job& job, bool done) {
  const Move& move = job.move;
  CHECK(job.dropped + job.blank <= move.blocks.count);
  if (done) {
    const Bytes each{size(move.blocks.first)};
    stats_.moved(move.from, move.to, each * (move.blocks.count - job.dropped - job.blank));
    stats_.dropped_clean(each * job.dropped);
    waited_.reset();
  }
  answers_.push_back(done ? Event(MoveDone{move.id}) : Event(MoveFailed{move.id, job.cancelled && job.error == 0}));
  note_usage();
  jobs_.erase(move.id.value);
}

// The blocks cannot leave or come now. That is no failure of the tier below, but others must have their turn before the
// next is tried.
void CpuMachine::refuse(const Job& job) {
  delayed_.push_back(MoveFailed{job.move.id, true});
  delayed_are_waited_for_ |= job.move.urgency != Urgency::plan;
  jobs_.erase(job.move.id.value);
}

// Blocks cannot leave: the script has direct I/O on a page of theirs, or has locked it, or there is no space below.
void CpuMachine::refused(int error) {
  last_refusal_ = error;
  if (error == EFAULT) fail_for_good("put a block back of which a part had left", error);
}

void CpuMachine::note_usage() {
  CHECK(device_in_use_ <= device_bytes() && host_in_use_ <= options_.host_frames);
  CHECK(ssd_in_use_ + children_.slots() <= file_.reserved_slots());
  stats_.holds(Tier::device, mapper_->held_for_device(device_in_use_, kBlockBytes * host_in_use_));
  stats_.holds(Tier::host, kBlockBytes * host_in_use_);
  stats_.holds(Tier::ssd, kBlockBytes * (ssd_in_use_ + children_.slots()));
}

// Something waits for what only the script's threads can bring about, and those do not ring.
bool CpuMachine::waits_for_room() const {
  return delayed_are_waited_for_ || !awaiting_frame_.empty() || !awaiting_map_.empty() ||
         (!writes_.empty() && writing_.count() == 0) || (!reads_.empty() && reading_.count() == 0);
}

// Nobody waits for ever without a word. What the disk does meanwhile may make room, and somebody else waits for that
// with another limit; time in which this process is stopped is no time in which it looked.
void CpuMachine::limit_waiting() {
  constexpr Nanos kBetweenLooks{100'000'000};  // at most, and many times what it is while something waits
  const Nanos looked = now();
  const Nanos since = std::min(looked - std::exchange(last_look_, looked), kBetweenLooks);
  if (!waits_for_room() || is_moving()) {
    waited_.reset();
    last_refusal_ = 0;
    return;
  }
  waited_ = waited_ ? *waited_ + since : Nanos{};
  if (*waited_ < options_.patience) return;
  constexpr std::string_view kPiecesKeepSpace =
      "an operator uses more than the device memory, so that blocks come in pieces, which keep their space on the SSD";
  if (last_refusal_ == ENOSPC && no_space_)
    failure_ = Error{no_space_->code, fmt::format("cannot make room on the device: {}; more is not to be had: {}",
                                                  kPiecesKeepSpace, no_space_->message)};
  else if (last_refusal_ == ENOSPC)
    fail_for_good(fmt::format("make room on the device: {}. Give more (--ssd-capacity), or more --device-memory",
                              kPiecesKeepSpace)
                      .c_str(),
                  last_refusal_);
  else
    fail_for_good(
        "make room on the device: for a long time no block could be taken off, since the script holds pages of its "
        "tensors (direct I/O, mlock, mlockall). The last refusal",
        last_refusal_);
}

void CpuMachine::fail_for_good(const char* what, int error) {
  if (failure_) return;
  if (error == EBADF) {
    failure_ = Error{Errc::io, std::string(kDescriptorsClosed)};
    return;
  }
  const bool by_script = error == EINVAL || error == ENOENT;
  failure_ =
      Error{Errc::io, fmt::format("cannot {}: {}{}", what, errno_text(error),
                                  by_script ? "; the script has locked (mlock), protected (mprotect), advised "
                                              "(madvise) or unmapped pages of a tensor, which cannot be moved then: "
                                              "let it not"
                                            : "")};
}

}  // namespace spillway
