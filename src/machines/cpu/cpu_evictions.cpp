#include <algorithm>
#include <utility>

#include "base/check.h"
#include "machines/cpu/clock.h"
#include "machines/cpu/cpu_machine.h"

namespace spillway {
namespace {

constexpr std::size_t kWritesAtOnce = 16;

}  // namespace

void CpuMachine::handle(const Move& move) {
  CHECK(move.blocks.count > 0 && !jobs_.contains(move.id.value));
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
  if (!take_all_off(blocks)) return refuse(job);
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    Block& block = at(id);
    block.lower = job.move.to;
    if (job.move.to == Tier::host) {
      block.buffer = mapper_->keep_in_host(address(id), block.buffer);
      CHECK(block.buffer != nullptr);
      block.state = BlockState::stored;
      --device_in_use_;
      ++host_in_use_;
    } else {
      block.state = BlockState::leaving;
      writes_.push(id, job.move.urgency);
      ++job.rest;
    }
  }
  note_usage();
  if (job.rest == 0) answer(job, true);
}

// All or none.
bool CpuMachine::take_all_off(BlockRange blocks) {
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    Block& block = at(id);
    if (!block.awaits_frame && mapper_->take_off(address(id), block.buffer) == 0) continue;
    put_back({blocks.first, id.value - blocks.first.value});
    return false;
  }
  return true;
}

void CpuMachine::put_back(BlockRange blocks) {
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    stall_.end(id, now());
    if (const int error = mapper_->put_back(address(id), at(id).buffer); error != 0)
      return give_up("put a block back that was to leave", error);
    at(id).buffer = nullptr;
  }
}

void CpuMachine::start_writes() {
  while (writing_ < kWritesAtOnce && !writes_.empty()) {
    const BlockId id = writes_.front();
    Block& block = at(id);
    const auto slot = file_.take();
    if (!slot) return;  // One is given back soon: all that is in use has its space reserved.
    writes_.pop();
    block.slot = *slot;
    block.has_slot = true;
    block.transferring = true;
    ++writing_;
    ++ssd_in_use_;
    io_->start({.id = id.value, .write = true, .memory = block.buffer, .offset = block.slot * kBlockBytes.value});
  }
}

void CpuMachine::finish_write(Job& job) {
  const Move& move = job.move;
  const bool done = job.error == 0 && !job.cancelled;
  if (!done && !job.undone && move.from == Tier::device) put_back(move.blocks);
  for (BlockId id = move.blocks.first; id < move.blocks.end(); ++id.value) {
    Block& block = at(id);
    if (!done) {
      give_back_slot(block);
      block.state = move.from == Tier::device ? BlockState::resident : BlockState::stored;
      block.lower = move.from;
      continue;
    }
    if (move.from == Tier::device) {
      mapper_->let_go(address(id), block.buffer);
      --device_in_use_;
    } else {
      mapper_->give_up_host(block.buffer);
      --host_in_use_;
    }
    block.buffer = nullptr;
    block.state = BlockState::stored;
    block.lower = Tier::ssd;
  }
  answer(job, done);
}

void CpuMachine::handle(const Cancel& command) {
  const auto found = jobs_.find(command.move.value);
  if (found == jobs_.end()) return;  // Too late: the answer is on its way.
  Job& job = found->second;
  if (job.move.from != Tier::device || job.cancelled) return;
  job.cancelled = true;
  for (BlockId id = job.move.blocks.first; id < job.move.blocks.end(); ++id.value) job.rest -= writes_.erase(id);
  // A block that is copied stays where it is; one that is moved comes back when the kernel has let go of it.
  if (options_.method == EvictionMethod::copy) {
    job.undone = true;
    put_back(job.move.blocks);
  }
  if (job.rest == 0) finish_write(job);
}

void CpuMachine::handle(const Discard& command) {
  for (BlockId id = command.blocks.first; id < command.blocks.end(); ++id.value) {
    Block& block = at(id);
    if (command.tier != Tier::device) {
      CHECK(block.state == BlockState::stored && block.lower == command.tier);
      block.state = BlockState::empty;
      give_back_slot(block);
      if (command.tier == Tier::host) {
        mapper_->give_up_host(std::exchange(block.buffer, nullptr));
        --host_in_use_;
      }
      continue;
    }
    CHECK(block.state == BlockState::resident && !block.kept);
    if (block.awaits_frame) {
      block.awaits_frame = false;
      block.state = BlockState::empty;
      std::erase(awaiting_frame_, id);
      // Who waits for it is an accident of the script's (nobody owns these bytes); the fault is told again.
      userfault_.wake(address(id), kBlockBytes.value);
    } else if (!try_discard(id)) {
      block.kept = true;
      block.kept_reported = false;
      kept_.push_back(id);
    }
  }
  note_usage();
}

// See Note [A dead block that lives again].
bool CpuMachine::try_discard(BlockId id) {
  Block& block = at(id);
  if (mapper_->take_off(address(id), block.buffer) != 0) return false;
  if (inbox_.allocations(id) != block.told_allocations) {
    put_back({id, 1});
    return false;
  }
  mapper_->let_go(address(id), std::exchange(block.buffer, nullptr));
  block.state = BlockState::empty;
  --device_in_use_;
  return true;
}

void CpuMachine::settle_kept() {
  std::erase_if(kept_, [&](BlockId id) {
    Block& block = at(id);
    if (block.kept_reported || inbox_.allocations(id) != block.told_allocations) return false;
    if (block.tensors == 0) {
      if (!try_discard(id)) return false;
      block.kept = false;
      return true;
    }
    block.kept_reported = true;
    answers_.push_back(Faulted{{0}, {id, 1}});
    return false;
  });
}

void CpuMachine::give_back_slot(Block& block) {
  if (!block.has_slot) return;
  file_.give_back(block.slot);
  block.has_slot = false;
  --ssd_in_use_;
}

}  // namespace spillway
