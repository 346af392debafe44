#include "machines/cuda/launch_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "machines/real/clock.h"

namespace spillway {
namespace {

template <class F>
void for_each_block(std::span<const BlockTouch> touches, F&& call) {
  for (const BlockTouch& touch : touches)
    for (BlockId block = touch.blocks.first; block < touch.blocks.end(); ++block.value) call(block);
}

}  // namespace

LaunchGate::LaunchGate(const Around& around, std::uint32_t blocks, std::uint32_t most_claimed, Bytes block_bytes)
    : around_(around),
      most_claimed_(most_claimed),
      block_bytes_(block_bytes),
      there_(blocks),
      claimed_(blocks),
      written_(blocks),
      arrived_(blocks),
      slots_(new std::array<Slot, Streams::kMost>) {}

bool LaunchGate::are_there(std::span<const BlockTouch> touches) const {
  for (const BlockTouch& touch : touches)
    for (BlockId block = touch.blocks.first; block < touch.blocks.end(); ++block.value)
      if (there_[block.value].load(std::memory_order_seq_cst) == 0) return false;
  return true;
}

Result<> LaunchGate::enter(CUstream stream, std::span<const BlockTouch> touches) {
  TRY_VOID(around_.streams.number_of(stream));
  const StreamId thread = around_.threads.of_this_thread();
  if (thread == Streams::kShared)
    return fail(Errc::unavailable, "the script launches from too many threads, which is not supported");
  Slot& slot = (*slots_)[thread.value];
  CHECK(slot.turns.load(std::memory_order_relaxed) % 2 == 0);
  slot.turns.fetch_add(1, std::memory_order_seq_cst);
  if (!are_there(touches)) {
    go_out(slot);
    held_.fetch_add(1, std::memory_order_relaxed);
    const MutexLock turn(turn_);
    // It looks again once it is inside, as long as all is claimed: who took a block off between has not seen it there,
    // and who does so from now on sees that it is claimed or waits for it to go out.
    Result<> claimed = claim(touches);
    for (; claimed; claimed = claim(touches)) {
      slot.turns.fetch_add(1, std::memory_order_seq_cst);
      if (are_there(touches)) break;
      go_out(slot);
    }
    for_each_block(touches, [&](BlockId block) { claimed_[block.value].store(0, std::memory_order_seq_cst); });
    TRY_VOID(claimed);
  }
  for (const BlockTouch& touch : touches)
    for (BlockId block = touch.blocks.first; touch.writes && block < touch.blocks.end(); ++block.value)
      written_[block.value].store(1, std::memory_order_relaxed);
  Result<> ready = let_stream_wait(stream, touches);
  if (ready && is_strict()) {
    std::vector<BlockRange> touched;
    for (const BlockTouch& touch : touches) touched.push_back(touch.blocks);
    ready = around_.check->begin(touched);
  }
  if (!ready) go_out(slot);
  return ready;
}

// All that comes up does so in one order.
Result<> LaunchGate::let_stream_wait(CUstream stream, std::span<const BlockTouch> touches) {
  std::uint64_t last = 0;
  for_each_block(touches,
                 [&](BlockId block) { last = std::max(last, arrived_[block.value].load(std::memory_order_relaxed)); });
  if (last <= around_.up.done()) return {};
  return around_.driver.check(around_.driver.cuStreamWaitEvent(stream, around_.up.event_of(last), 0),
                              "let a stream wait for what it needs");
}

void LaunchGate::leave(CUstream stream, std::span<const BlockTouch> touches, const OnMiss& on_miss) {
  if (is_strict()) around_.check->end(stream, on_miss);
  const auto number = around_.streams.number_of(stream);
  CHECK(number.has_value());
  const std::uint64_t launch = around_.streams.enqueued(*number);
  for (const BlockTouch& touch : touches) around_.streams.uses(*number, launch, touch.blocks);
  go_out((*slots_)[around_.threads.of_this_thread().value]);
}

void LaunchGate::go_out(Slot& slot) {
  CHECK(slot.turns.fetch_add(1, std::memory_order_seq_cst) % 2 == 1);
  if (is_awaited_.load(std::memory_order_seq_cst)) around_.bell.ring();
}

std::optional<Error> LaunchGate::ended() {
  const MutexLock lock(mutex_);
  return ended_ ? std::optional(Error{Errc::unavailable, *ended_}) : std::nullopt;
}

// The blocks stay claimed, whatever it returns.
Result<> LaunchGate::claim(std::span<const BlockTouch> touches) {
  std::uint32_t count = 0;
  for_each_block(touches,
                 [&](BlockId block) { count += claimed_[block.value].exchange(1, std::memory_order_seq_cst) == 0; });
  if (count > most_claimed_)
    return fail(
        Errc::out_of_memory,
        fmt::format("one launch uses {} of device memory, and the budget is {}: give a larger --device-memory{}",
                    to_text(block_bytes_ * count), to_text(block_bytes_ * most_claimed_),
                    block_bytes_ > kBlockBytes ? ", or a smaller --block-size" : ""));
  const StreamId thread = around_.threads.of_this_thread();
  around_.stall.begin(now());
  for (bool told = false;; told = true) {
    std::uint64_t seen = 0;
    {
      const MutexLock lock(mutex_);
      if (ended_) break;
      seen = changes_;
    }
    if (are_there(touches)) break;
    if (!told) {
      bool anew = true;
      for (const BlockTouch& touch : touches)
        if (touch.blocks.count > 0) around_.inbox.missing(thread, touch.blocks, std::exchange(anew, false));
      around_.bell.ring();
    }
    const MutexLock lock(mutex_);
    changed_.wait(mutex_, [&]() SPILLWAY_REQUIRES(mutex_) { return changes_ != seen || ended_; });
  }
  around_.stall.end(now());
  if (const auto error = ended()) return std::unexpected(*error);
  return {};
}

void LaunchGate::put(BlockId block, std::uint64_t mark) {
  arrived_[block.value].store(mark, std::memory_order_relaxed);
  there_[block.value].store(1, std::memory_order_seq_cst);
}

void LaunchGate::take_off(BlockId block) { there_[block.value].store(0, std::memory_order_seq_cst); }

std::vector<LaunchGate::Inside> LaunchGate::inside() {
  std::vector<Inside> some;
  const std::uint32_t count = around_.threads.count();
  for (std::uint32_t thread = 0; thread < count; ++thread) {
    const std::uint64_t turns = (*slots_)[thread].turns.load(std::memory_order_seq_cst);
    if (turns % 2 == 1) some.push_back({thread, turns});
  }
  return some;
}

bool LaunchGate::are_outside(std::vector<Inside>& some) {
  const auto look = [&] {
    std::erase_if(some, [&](const Inside& one) {
      return (*slots_)[one.thread].turns.load(std::memory_order_seq_cst) != one.since;
    });
    return some.empty();
  };
  if (look()) return true;
  is_awaited_.store(true, std::memory_order_seq_cst);
  return look();
}

void LaunchGate::wake() {
  const MutexLock lock(mutex_);
  ++changes_;
  changed_.notify_all();
}

void LaunchGate::end(std::string why) {
  const MutexLock lock(mutex_);
  if (!ended_) ended_ = std::move(why);
  changed_.notify_all();
}

}  // namespace spillway
