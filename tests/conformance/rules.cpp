#include "rules.h"

#include "base/check.h"

namespace spillway {
namespace {

template <class F>
void for_each(BlockRange blocks, F&& call) {
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value) call(block);
}

}  // namespace

void RuledMachine::take_frames(std::uint64_t count) {
  in_use_ += count;
  CHECK(in_use_ <= device_blocks_);
}

void RuledMachine::set(BlockRange blocks, std::optional<Tier> tier) {
  for_each(blocks, [&](BlockId block) { where_[block.value] = tier; });
}

void RuledMachine::submit(std::span<const Command> commands) {
  for (const Command& command : commands) {
    if (const auto* move = std::get_if<Move>(&command)) {
      CHECK(moves_.emplace(move->id.value, *move).second);
      for_each(move->blocks, [&](BlockId block) {
        CHECK(where_[block.value] == move->from);
        if (move->from == Tier::device) CHECK((copy_[block.value] == move->to) == move->clean);
        if (move->from == Tier::device) CHECK(!copy_[block.value] || move->clean);
        copy_[block.value].reset();
        asked_.moved(move->from, move->to).push_back(block);
        asked_.dropped_clean += move->clean && move->from == Tier::device;
      });
      if (move->to == Tier::device) take_frames(move->blocks.count);
      set(move->blocks, std::nullopt);
    } else if (const auto* populate = std::get_if<Populate>(&command)) {
      for_each(populate->blocks, [&](BlockId block) {
        CHECK(!where_[block.value]);
        asked_.populated.push_back(block);
      });
      take_frames(populate->blocks.count);
      set(populate->blocks, Tier::device);
    } else if (const auto* discard = std::get_if<Discard>(&command)) {
      for_each(discard->blocks, [&](BlockId block) {
        asked_.discarded.push_back(block);
        if (where_[block.value] == Tier::device && discard->tier != Tier::device) {
          CHECK(copy_[block.value] == discard->tier);
          copy_[block.value].reset();
          return;
        }
        CHECK(where_[block.value] == discard->tier && !copy_[block.value]);
        where_[block.value].reset();
      });
      if (discard->tier == Tier::device) in_use_ -= discard->blocks.count;
    } else if (const auto* cancel = std::get_if<Cancel>(&command)) {
      CHECK(moves_.at(cancel->move.value).from == Tier::device);
    } else {
      CHECK(waiting_.erase(std::get<Launch>(command).launch) == 1);
    }
  }
  machine_.submit(commands);
}

Result<Stamped> RuledMachine::wait() {
  auto event = machine_.wait();
  if (!event) return event;
  CHECK(event->at >= last_);
  last_ = event->at;
  const auto land = [&](MoveId id, bool done) {
    const auto found = moves_.find(id.value);
    CHECK(found != moves_.end());  // Every move is answered once.
    const Move move = found->second;
    moves_.erase(found);
    if ((move.from == Tier::device) == done) in_use_ -= move.blocks.count;
    set(move.blocks, done ? move.to : move.from);
    if (done && move.to == Tier::device && move.clean)
      for_each(move.blocks, [&](BlockId block) { copy_[block.value] = move.from; });
  };
  if (const auto* done = std::get_if<MoveDone>(&event->what)) land(done->move, true);
  if (const auto* failed = std::get_if<MoveFailed>(&event->what)) land(failed->move, false);
  if (const auto* ready = std::get_if<KernelReady>(&event->what)) {
    if (ready->waits) CHECK(waiting_.insert(ready->launch).second);
    CHECK(!written_.contains(ready->launch));
    auto& written = written_[ready->launch];
    for (const BlockAccess& access : ready->accesses)
      if (access.writes) written.push_back(access.blocks);
  }
  if (const auto* ended = std::get_if<KernelDone>(&event->what)) {
    CHECK(!waiting_.contains(ended->launch));
    for (const BlockRange& blocks : written_.at(ended->launch))
      for_each(blocks, [&](BlockId block) { CHECK(!copy_[block.value]); });
    written_.erase(ended->launch);
  }
  if (const auto* fault = std::get_if<Faulted>(&event->what))
    for_each(fault->blocks, [&](BlockId block) { CHECK(block.value < where_.size()); });
  return event;
}

}  // namespace spillway
