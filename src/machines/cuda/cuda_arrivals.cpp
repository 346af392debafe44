#include <algorithm>
#include <utility>

#include "base/check.h"
#include "machines/cuda/cuda_machine.h"
#include "machines/real/clock.h"

// See Note [Launches].
namespace spillway {

void CudaMachine::handle(const Populate& command) {
  for (BlockId id = command.blocks.first; id < command.blocks.end(); ++id.value) {
    Block& block = at(id);
    CHECK(block.state == BlockState::empty);
    block.state = BlockState::resident;
    if (std::exchange(block.kept, false)) {  // Its frame was never given up.
      std::erase(kept_, id);
    } else if (drops_.erase(id.value) > 0) {  // Nor is it now.
      gate_.put_back(id);
    } else {
      block.blank = true;
      awaiting_frame_.push_back(id);
    }
  }
  gate_.wake();
}

void CudaMachine::populate_waiting() {
  bool any = false;
  while (!awaiting_frame_.empty() && memory_->free_frames() > 0) {
    const BlockId id = awaiting_frame_.front();
    awaiting_frame_.pop_front();
    if (!holds(memory_->map(id))) return;
    at(id).blank = false;
    gate_.put(id, 0);
    any = true;
  }
  if (!any) return;
  progress_at_ = now();
  gate_.wake();
}

bool CudaMachine::step_up(Job& job) {
  using enum Job::Step;
  if (job.step == frames) {
    if (!take_frames(job)) return false;
    job.step = buffers;
  }
  if (job.move.from == Tier::host) return bring_up(job);
  if (job.step == buffers) {
    if (!take_staging(job)) return false;
    start_reads(job);
    job.step = transfers;
  }
  if (job.rest > 0) return false;
  if (job.error == 0) return bring_up(job);
  fail_to_read(job);
  return true;
}

// All of them, for what has begun to arrive cannot be refused any more.
bool CudaMachine::take_frames(Job& job) {
  const BlockRange blocks = job.move.blocks;
  std::uint32_t needed = 0;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) needed += !at(id).blank;
  if (memory_->free_frames() < needed) return false;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value)
    if (!at(id).blank && !holds(memory_->map(id))) return false;
  return true;
}

// All or nothing, like CudaMachine::take_buffers; but it can wait for ever for none: who has staging ends by itself.
bool CudaMachine::take_staging(const Job& job) {
  const BlockRange blocks = job.move.blocks;
  std::vector<std::byte*> taken;
  std::uint32_t needed = 0;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) needed += !at(id).blank;
  while (taken.size() < needed) {
    std::byte* const slot = staging_.take();
    if (slot == nullptr) break;
    taken.push_back(slot);
  }
  if (taken.size() < needed) {
    for (std::byte* const slot : taken) staging_.give_back(slot);
    if (staging_.slots_in_use() == 0)
      fail_for_good({Errc::out_of_memory, "cannot read blocks from the SSD: " + staging_.shortage() +
                                              "; let more memory be locked (ulimit -l), or free some"});
    return false;
  }
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    if (at(id).blank) continue;
    at(id).staging = taken.back();
    taken.pop_back();
  }
  return true;
}

void CudaMachine::start_reads(Job& job) {
  const BlockRange blocks = job.move.blocks;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    if (at(id).blank) continue;
    reads_.push(id, job.move.urgency);
    ++job.rest;
  }
}

void CudaMachine::fail_to_read(Job& job) {
  const BlockRange blocks = job.move.blocks;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    Block& block = at(id);
    block.state = BlockState::stored;
    if (block.blank) continue;
    staging_.give_back(std::exchange(block.staging, nullptr));
    if (!holds(memory_->unmap(id))) return;
  }
  answer(job, false);
}

// Enqueues the copies; who launches lets its stream wait for them. False: it failed for good.
bool CudaMachine::bring_up(Job& job) {
  const BlockRange blocks = job.move.blocks;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    const Block& block = at(id);
    if (block.blank) continue;
    const std::byte* const from = job.move.from == Tier::host ? block.slot : block.staging;
    if (!holds(memory_->allow(id)) || !holds(up_->copy_to_device(address(id), from, block_bytes().value))) return false;
  }
  auto mark = up_->mark();
  if (!mark) return fail_for_good(mark.error()), false;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    Block& block = at(id);
    block.state = BlockState::resident;
    if (block.blank) {
      awaiting_frame_.push_back(id);
      ++job.blank;
      continue;
    }
    give_up(staging_, block.staging, *mark, 0);
    if (!job.move.clean)
      forget_copies(id, *mark);
    else if (block.file_slot)
      copies_.insert(id);
    gate_.call_clean(id);
    gate_.put(id, *mark);
  }
  gate_.wake();
  answer(job, true);
  return true;
}

}  // namespace spillway
