#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "machines/cuda/cuda_machine.h"

// See Note [Launches].
namespace spillway {

void CudaMachine::begin_eviction(Job& job) {
  const BlockRange blocks = job.move.blocks;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    copies_.erase(id);
    if (at(id).blank)
      std::erase(awaiting_frame_, id);
    else
      gate_.take_off(id);
  }
  job.inside = gate_.inside();
}

bool CudaMachine::step_down(Job& job) {
  using enum Job::Step;
  const BlockRange blocks = job.move.blocks;
  if (job.step == launches) {
    if (!gate_.are_outside(job.inside)) return false;
    // Somebody waits for it, or the news of its tensor's death would throw away another one's bytes below: it stays,
    // and others have their turn before the next is tried.
    bool stays = false;
    for (BlockId id = blocks.first; id < blocks.end(); ++id.value)
      stays |= !at(id).blank && (gate_.is_claimed(id) || !knows_allocations(id));
    if (stays || job.cancelled) {
      come_back(job, job.cancelled);
      return true;
    }
    for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
      Block& block = at(id);
      job.blank += block.blank;
      block.is_copied = !block.blank && !has_copy(job, id);
      job.dropped += !block.blank && !block.is_copied;
      if (!block.blank) find_uses(id, job);
    }
    job.step = buffers;
  }
  if (job.step == buffers) {
    if (job.cancelled) {
      come_back(job, true);
      return true;
    }
    if (!has_events(job)) return false;
    if (!take_buffers(job)) return job.error != 0;
    if (!start_copies(job)) return false;
    job.step = copies;
  }
  if (job.step == copies) {
    if (job.cancelled) {
      come_back(job, true);
      return true;
    }
    if (!are_done(job)) return false;
    job.step = transfers;
    for (BlockId id = blocks.first; job.move.to == Tier::ssd && id < blocks.end(); ++id.value) {
      if (at(id).staging == nullptr) continue;
      writes_.push(id, job.move.urgency);
      ++job.rest;
    }
  }
  return job.rest == 0 && has_left(job);
}

// A block is the same as below if the move says so, and nothing has been launched since that may write to it.
bool CudaMachine::has_copy(const Job& job, BlockId id) const {
  const Block& block = at(id);
  const bool is_there = job.move.to == Tier::host ? block.slot != nullptr : block.file_slot.has_value();
  return job.move.clean && is_there && !gate_.is_written(id);
}

// All or nothing: two that each wait for the other's would wait for ever. False: not yet, or not at all (an error).
bool CudaMachine::take_buffers(Job& job) {
  const BlockRange blocks = job.move.blocks;
  PinnedMemory& pool = job.move.to == Tier::host ? host_ : staging_;
  std::vector<std::byte*> taken;
  std::vector<std::uint32_t> file_slots;
  bool enough = true;
  for (BlockId id = blocks.first; enough && id < blocks.end(); ++id.value) {
    if (!at(id).is_copied) continue;
    const bool has_slot = job.move.to == Tier::host && at(id).slot != nullptr;
    std::byte* const slot = has_slot ? nullptr : pool.take();
    if (slot != nullptr) taken.push_back(slot);
    enough = has_slot || slot != nullptr;
    if (!enough || job.move.to == Tier::host || at(id).file_slot) continue;
    if (const auto file_slot = take_file_slot())
      file_slots.push_back(*file_slot);
    else
      enough = false, job.error = ENOSPC;
  }
  if (!enough) {
    for (std::byte* const slot : taken) pool.give_back(slot);
    for (const std::uint32_t slot : file_slots) file_.give_back(slot);
    // What is lent comes back by itself, and so does staging that is in use.
    const bool is_lent = std::ranges::count(lent_, &pool, &Lent::pool) > 0;
    const bool is_in_use = &pool == &staging_ && staging_.slots_in_use() > 0;
    if (job.error == 0 && (is_lent || is_in_use)) return false;
    if (job.error == 0 && !staging_.shortage().empty() && &pool == &staging_)
      return fail_for_good({Errc::out_of_memory, "cannot write blocks to the SSD: " + staging_.shortage() +
                                                     "; let more memory be locked (ulimit -l), or free some"}),
             false;
    if (!makes_up_for_shortage()) return false;
    const bool is_file_full = job.error == ENOSPC;  // Arrivals give slots back.
    if (!is_file_full) job.error = ENOMEM;
    come_back(job, !is_file_full);
    return false;
  }
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    Block& block = at(id);
    if (!block.is_copied) continue;
    if (job.move.to == Tier::host) {
      if (block.slot != nullptr) continue;
      block.slot = taken.back();
    } else {
      block.staging = taken.back();
      if (!block.file_slot) {
        block.file_slot = file_slots.back();
        file_slots.pop_back();
      }
    }
    taken.pop_back();
  }
  CHECK(taken.empty() && file_slots.empty());
  return true;
}

// Where the system pins less than the budget: what was promised to lie there needs room on the SSD. All of it does,
// since the executor soon sends nothing more to a tier that refuses. False: there is none.
bool CudaMachine::makes_up_for_shortage() {
  if (host_.shortage().empty() || host_blocks_missing() > 0) return true;
  if (options_.on_shortage) options_.on_shortage(host_.shortage());
  const std::uint32_t missing = options_.host_slots;
  host_blocks_missing_.store(missing, std::memory_order_release);
  const DiskWait wait(options_.disk_waits, WaitsFor::space);
  const auto reserved = file_.reserve(std::min(file_.reserved_slots() + missing, file_.capacity_slots()));
  if (!reserved)
    fail_for_good({Errc::out_of_memory, fmt::format("{}, and {}; give a smaller --host-memory", host_.shortage(),
                                                    reserved.error().message)});
  return reserved.has_value();
}

// Behind all that uses the blocks, and behind the copies that bring their bytes. False: it failed for good.
bool CudaMachine::start_copies(Job& job) {
  const BlockRange blocks = job.move.blocks;
  bool any = false;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) any |= at(id).is_copied;
  for (const ScriptStreams::Use& use : job.uses) {
    if (script_streams_.is_done(use)) continue;
    auto event = script_streams_.event_after(use);
    if (!event) return fail_for_good(event.error()), false;
    if (any && !holds(down_->wait_for(*event))) return false;
  }
  if (any && job.up > up_->done() && !holds(down_->wait_for(up_->event_of(job.up)))) return false;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    if (!at(id).is_copied) continue;
    std::byte* const to = job.move.to == Tier::host ? at(id).slot : at(id).staging;
    if (!holds(memory_->allow(id)) || !holds(down_->copy_from_device(to, address(id), block_bytes().value)))
      return false;
  }
  if (!any) return true;
  auto mark = down_->mark();
  if (!mark) return fail_for_good(mark.error()), false;
  job.down = *mark;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value)
    if (at(id).is_copied) at(id).down = *mark;
  return true;
}

void CudaMachine::find_uses(BlockId id, Job& job) {
  script_streams_.find_uses(id, job.uses);
  job.up = std::max(job.up, gate_.arrived(id));
  job.down = std::max(job.down, at(id).down);
  // Of each stream the last one says it all.
  std::ranges::sort(job.uses, [](const auto& a, const auto& b) {
    return std::pair(a.stream, b.launch) < std::pair(b.stream, a.launch);
  });
  const auto [first, last] = std::ranges::unique(job.uses, {}, &ScriptStreams::Use::stream);
  job.uses.erase(first, last);
}

// One behind each use. False: not yet, since nothing can be recorded on a stream while a graph is captured there, which
// ends by itself; or it failed for good.
bool CudaMachine::has_events(const Job& job) {
  for (const ScriptStreams::Use& use : job.uses) {
    if (script_streams_.is_done(use)) continue;
    const auto event = script_streams_.event_after(use);
    if (!event) fail_for_good(event.error());
    waits_for_capture_ |= event && *event == nullptr;
    if (!event || *event == nullptr) return false;
  }
  return true;
}

bool CudaMachine::are_done(const Job& job) const {
  return job.down <= down_->done() && job.up <= up_->done() &&
         std::ranges::all_of(job.uses, [&](const auto& use) { return script_streams_.is_done(use); });
}

// The bytes are below: the frames are free.
bool CudaMachine::has_left(Job& job) {
  const BlockRange blocks = job.move.blocks;
  if (job.error != 0 || job.cancelled) {
    come_back(job, true);
    return true;
  }
  std::vector<BlockId> missed;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    Block& block = at(id);
    block.state = BlockState::stored;
    if (block.blank) {
      if (gate_.is_claimed(id)) missed.push_back(id);
      continue;
    }
    if (!holds(memory_->unmap(id))) return false;
    if (block.staging != nullptr) staging_.give_back(std::exchange(block.staging, nullptr));
    if (job.move.to == Tier::ssd && block.slot != nullptr) host_.give_back(std::exchange(block.slot, nullptr));
    if (job.move.to == Tier::host && block.file_slot) {
      file_.give_back(*block.file_slot);
      block.file_slot.reset();
    }
  }
  answer(job, true);
  // A launch has asked for these, and they had no frames yet: who waits asks only once.
  for (const BlockId id : missed) answers_.push_back(Faulted{kNobody, {id, 1}});
  return true;
}

// The move is not done: the blocks are where they were, without copies below. What is asked for again at once would
// only be refused again: then the answer is told after others.
void CudaMachine::come_back(Job& job, bool at_once) {
  const BlockRange blocks = job.move.blocks;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    Block& block = at(id);
    job.rest -= writes_.erase(id);
    block.state = BlockState::resident;
    forget_copies(id, gate_.arrived(id));
    if (block.blank)
      awaiting_frame_.push_back(id);
    else
      gate_.put_back(id);
  }
  CHECK(job.rest == 0);
  gate_.wake();
  if (at_once)
    answer(job, false);
  else
    delayed_.push_back(MoveFailed{job.move.id, true});
}

void CudaMachine::handle(const Cancel& command) {
  const auto found = jobs_.find(command.move.value);
  if (found == jobs_.end()) return;  // Too late: the answer is on its way.
  Job& job = found->second;
  if (job.move.from != Tier::device) return;
  job.cancelled = true;  // The next step sees it.
  const BlockRange blocks = job.move.blocks;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) job.rest -= writes_.erase(id);
}

void CudaMachine::handle(const Discard& command) {
  for (BlockId id = command.blocks.first; id < command.blocks.end(); ++id.value) {
    Block& block = at(id);
    if (command.tier == Tier::device) {
      CHECK(tensors(id) == 0 && block.state == BlockState::resident && !block.kept);
      forget_copies(id, gate_.arrived(id));
      block.state = BlockState::empty;
      if (std::exchange(block.blank, false))
        std::erase(awaiting_frame_, id);
      else
        begin_drop(id);
      continue;
    }
    if (block.state != BlockState::resident) {  // All that there is, and not only a copy.
      CHECK(tensors(id) == 0 && block.state == BlockState::stored && block.lower == command.tier);
      block.state = BlockState::empty;
      block.blank = false;
    }
    forget_copies(id, gate_.arrived(id));
  }
}

// It may be asked for again before it is off, or have been given to a new tensor of which the executor has not heard.
void CudaMachine::begin_drop(BlockId id) {
  CHECK(!drops_.contains(id.value));
  gate_.take_off(id);
  drops_[id.value].inside = gate_.inside();
}

bool CudaMachine::step_drop(BlockId id, Job& job) {
  using enum Job::Step;
  if (job.step == launches) {
    if (!gate_.are_outside(job.inside)) return false;
    // A tensor may have got it, and have been told meanwhile, while a thread was inside that saw the block.
    if (!knows_allocations(id) || tensors(id) > 0 || gate_.is_claimed(id)) {
      gate_.put_back(id);
      gate_.wake();
      at(id).kept = true;
      at(id).kept_reported = false;
      kept_.push_back(id);
      return true;
    }
    job.uses.clear();
    find_uses(id, job);
    if (!has_events(job)) return false;
    job.step = copies;
  }
  return are_done(job) && holds(memory_->unmap(id));
}

// Those are told to be there still, once the executor has heard that they live.
void CudaMachine::settle_kept() {
  std::erase_if(kept_, [&](BlockId id) {
    Block& block = at(id);
    if (block.kept_reported || !knows_allocations(id)) return false;
    if (tensors(id) == 0) {
      block.kept = false;
      begin_drop(id);
      return true;
    }
    block.kept_reported = true;
    answers_.push_back(Faulted{kNobody, {id, 1}});
    return false;
  });
}

// Nothing moves, and there are fewer frames than the executor believes: it has been told of the blocks that live again,
// and has frames for them as soon as those of this arrival are free.
void CudaMachine::refuse_arrival() {
  if (!answers_.empty() || !drops_.empty() || is_device_busy()) return;
  if (std::ranges::none_of(kept_, [&](BlockId id) { return at(id).kept_reported; })) return;
  for (auto& [id, job] : jobs_) {
    if (job.move.from == Tier::device) return;
    if (job.step != Job::Step::frames) return;
  }
  if (jobs_.empty()) return;
  const auto job = jobs_.begin();
  const BlockRange blocks = job->second.move.blocks;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) at(id).state = BlockState::stored;
  delayed_.push_back(MoveFailed{job->second.move.id, true});
  jobs_.erase(job);
}

// What copies may still use comes back when they are done.
void CudaMachine::give_up(PinnedMemory& pool, std::byte*& slot, std::uint64_t up, std::uint64_t down) {
  if (slot == nullptr) return;
  if (up > up_->done() || down > down_->done())
    lent_.push_back({up, down, &pool, slot});
  else
    pool.give_back(slot);
  slot = nullptr;
}

// `up`: the mark of the copy that brings the block, which may not have read them yet. One down, which was called off,
// may still write them.
void CudaMachine::forget_copies(BlockId id, std::uint64_t up) {
  Block& block = at(id);
  give_up(host_, block.slot, up, block.down);
  give_up(staging_, block.staging, up, block.down);
  if (!block.file_slot) return;
  copies_.erase(id);
  file_.give_back(*block.file_slot);
  block.file_slot.reset();
}

std::optional<std::uint32_t> CudaMachine::take_file_slot() {
  if (copies_.empty() || file_.has_free_slot()) return file_.take();
  Block& block = at(*copies_.begin());
  copies_.erase(copies_.begin());
  const auto slot = block.file_slot;
  block.file_slot.reset();
  return slot;
}

}  // namespace spillway
