#include "machines/cpu/children/kept_blocks.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <set>

#include "base/check.h"

namespace spillway {
namespace {

constexpr int kNone = -1, kLost = -2;  // instead of contents

using Bytes2M = std::unique_ptr<std::byte[]>;
Bytes2M new_block() { return std::make_unique<std::byte[]>(kBlockBytes.value); }
void put(std::byte* block, int contents) {
  std::memcpy(block, &contents, sizeof contents);
  std::memcpy(block + kBlockBytes.value - sizeof contents, &contents, sizeof contents);
}
int get(const std::byte* block) {
  int first = 0, last = 0;
  std::memcpy(&first, block, sizeof first);
  std::memcpy(&last, block + kBlockBytes.value - sizeof last, sizeof last);
  return first == last ? first : -3;
}

// A machine whose blocks have numbers for contents, which no two share, and a disk that ends transfers in any order.
class KeepingMachine {
 public:
  static constexpr std::uint32_t kBlocks = 4, kSlots = 16, kFirstTransfer = 100;

  KeepingMachine() : kept(kBlocks, buffers_.get(), kFirstTransfer, port()) {
    for (Block& block : blocks_) {
      block.memory = new_block();
      change(block);
    }
    for (std::uint32_t slot = 0; slot < kSlots; ++slot) free_.insert(slot);
  }

  struct Block {
    Bytes2M memory;
    int contents = kNone;
    std::optional<std::uint32_t> slot;  // it is away, and its bytes are there
  };

  Block& at(BlockId id) { return blocks_[id.value]; }
  bool has_transfers() const { return !transfers_.empty(); }
  bool has_room() const { return kept.slots() < allowed && !free_.empty(); }
  std::size_t taken() const { return kSlots - free_.size(); }

  void take() {
    const SnapshotId snapshot = kept.take().snapshot;
    last_taken_ = snapshot;
    auto& seen = sees[snapshot];
    for (std::uint32_t id = 0; id < kBlocks; ++id) seen.push_back(at({id}).contents);
    if (unprotected_ < kBlocks) settle({unprotected_}, true);
  }
  void drop(SnapshotId snapshot) {
    sees.erase(snapshot);
    kept.drop(snapshot);
  }
  void protect_all_but(std::uint32_t id) { unprotected_ = id; }
  // Writes to the block, if that need not wait.
  bool write(BlockId id) {
    if (!may_change(id)) return false;
    change(at(id));
    return true;
  }
  bool discard(BlockId id) {
    if (!may_change(id)) return false;
    if (at(id).slot) free_.insert(*std::exchange(at(id).slot, std::nullopt));
    at(id).contents = kNone;
    return true;
  }
  // It dies in host memory.
  void discard_with_frame(BlockId id) {
    const bool is_lost = !has_room();
    about_to_keep_ = who_sees(id);
    Bytes2M frame = std::exchange(at(id).memory, new_block());
    std::byte* bytes = frame.get();
    frames_[bytes] = std::move(frame);
    kept.take_frame(id, bytes);
    settle(id, is_lost);
    at(id).contents = kNone;
  }
  void evict(BlockId id) {
    if (free_.empty()) return;
    at(id).slot = take_slot();
    disk_[*at(id).slot] = at(id).contents;
    put(at(id).memory.get(), -4);
  }
  void fetch(BlockId id) {
    const int contents = disk_.at(*at(id).slot);
    RC_ASSERT(may_change(id));  // The slot alone changes hands.
    if (at(id).slot) free_.insert(*std::exchange(at(id).slot, std::nullopt));
    put(at(id).memory.get(), contents);
  }

  void end_transfer(std::size_t which, bool fails) {
    const auto ended = std::next(transfers_.begin(), static_cast<std::ptrdiff_t>(which % transfers_.size()));
    const Transfer transfer = ended->second;
    transfers_.erase(ended);
    const auto slot = static_cast<std::uint32_t>(transfer.offset / kBlockBytes.value);
    disk_[slot] = fails ? -5 : get(transfer.memory);
    if (fails) lose(kept_in_.at(slot));
    kept.ended(transfer.id - kFirstTransfer, fails ? EIO : 0);
  }

  void check() {
    for (const auto& [snapshot, seen] : sees)
      for (std::uint32_t id = 0; id < kBlocks; ++id) {
        const KeptBlocks::Seen found = kept.find(snapshot, {id});
        switch (found.where) {
          case KeptBlocks::Seen::Where::there:
            RC_ASSERT((found.place.bytes != nullptr ? get(found.place.bytes) : disk_.at(found.place.slot)) == seen[id]);
            break;
          case KeptBlocks::Seen::Where::nowhere:
            RC_ASSERT(seen[id] == kNone);
            break;
          case KeptBlocks::Seen::Where::lost:
            RC_ASSERT(seen[id] == kLost);
        }
      }
    std::size_t own = 0;
    for (const Block& block : blocks_) own += block.slot.has_value();
    RC_ASSERT(taken() == own + kept.slots());
    RC_ASSERT(kept.under_way() == transfers_.size());
    RC_ASSERT(frames_.empty() || has_transfers());
  }

 private:
  Bytes2M buffers_ = std::make_unique<std::byte[]>(KeptBlocks::kMostWrites * kBlockBytes.value);
  std::array<Block, kBlocks> blocks_;
  std::uint32_t unprotected_ = kBlocks;
  std::set<std::uint32_t> free_;
  std::map<std::uint32_t, int> disk_;
  std::map<std::uint32_t, Transfer> transfers_;
  std::map<std::byte*, Bytes2M> frames_;
  int last_ = 0;
  struct Seers {
    BlockId block;
    std::vector<SnapshotId> snapshots;
  };
  std::map<std::uint32_t, Seers> kept_in_;  // by slot
  Seers about_to_keep_;
  std::array<SnapshotId, kBlocks> settled_{};  // those up to it do not depend on what the block is now
  SnapshotId last_taken_;

 public:
  std::map<SnapshotId, std::vector<int>> sees;
  std::uint32_t allowed = 0;
  KeptBlocks kept;

 private:
  KeptBlocks::Port port() {
    return {.place = [this](BlockId id) -> KeptBlocks::Place {
              if (at(id).slot) return {.slot = *at(id).slot};
              return {.bytes = at(id).memory.get()};
            },
            .protect = [this](BlockId id) -> KeptBlocks::Found {
              return {.is_somebodys = at(id).contents != kNone, .is_protected = id.value != unprotected_};
            },
            .is_in_pieces = [](BlockId) { return false; },
            .copy_to_slot = [](BlockId, std::uint32_t) { return false; },
            .take_slot = [this]() -> std::optional<std::uint32_t> {
              if (free_.empty()) return std::nullopt;
              const std::uint32_t slot = take_slot();
              kept_in_[slot] = about_to_keep_;
              return slot;
            },
            .give_back_slot =
                [this](std::uint32_t slot) {
                  for (const auto& [number, transfer] : transfers_)
                    RC_ASSERT(transfer.offset / kBlockBytes.value != slot);
                  RC_ASSERT(free_.insert(slot).second);
                },
            .slot_is_ours = [this](BlockId id) { at(id).slot.reset(); },
            .free_frame = [this](std::byte* frame) { RC_ASSERT(frames_.erase(frame) == 1u); },
            .start =
                [this](const Transfer& transfer) {
                  RC_ASSERT(transfer.write && transfer.id - kFirstTransfer < KeptBlocks::kMostWrites);
                  RC_ASSERT(transfers_.emplace(transfer.id, transfer).second);
                }};
  }
  std::uint32_t take_slot() { return free_.extract(free_.begin()).value(); }
  void change(Block& block) { put(block.memory.get(), block.contents = ++last_); }
  // The block as it is now.
  Seers who_sees(BlockId id) const {
    Seers seers{id, {}};
    for (const auto& [snapshot, seen] : sees)
      if (snapshot > settled_[id.value]) seers.snapshots.push_back(snapshot);
    return seers;
  }
  void settle(BlockId id, bool is_lost) {
    if (is_lost) lose(who_sees(id));
    settled_[id.value] = last_taken_;
  }
  void lose(const Seers& seers) {
    for (const SnapshotId snapshot : seers.snapshots)
      if (const auto found = sees.find(snapshot); found != sees.end() && found->second[seers.block.value] != kNone)
        found->second[seers.block.value] = kLost;
  }
  bool may_change(BlockId id) {
    const bool has_slot = at(id).slot.has_value();
    const bool is_lost = !(has_slot ? kept.slots() < allowed : has_room());
    about_to_keep_ = who_sees(id);
    if (!kept.keep(id)) {
      RC_ASSERT(has_transfers() && kept.wants(id) && !is_lost && !has_slot);
      return false;
    }
    RC_ASSERT(!kept.wants(id));
    settle(id, is_lost);
    return true;
  }
};

RC_GTEST_PROP(KeptBlocksProperty, EachSnapshotSeesItsMomentWhateverTheDiskDoes, ()) {
  KeepingMachine machine;
  machine.allowed = *rc::gen::inRange(0u, KeepingMachine::kSlots);
  machine.kept.allow(machine.allowed);
  const auto steps = *rc::gen::inRange(1, 60);
  for (int step = 0; step < steps; ++step) {
    const BlockId id{*rc::gen::inRange(0u, KeepingMachine::kBlocks)};
    const bool is_here = !machine.at(id).slot && machine.at(id).contents != kNone;
    switch (*rc::gen::inRange(0, 12)) {
      case 0:
      case 1:
        if (machine.sees.size() < 4) machine.take();
        break;
      case 2:
      case 3:
        if (!machine.at(id).slot) machine.write(id);
        break;
      case 4:
        if (is_here) machine.evict(id);
        break;
      case 5:
        if (machine.at(id).slot) machine.fetch(id);
        break;
      case 6:
        if (machine.at(id).contents != kNone) machine.discard(id);
        break;
      case 7:
      case 8:
        if (is_here) machine.discard_with_frame(id);
        break;
      case 9:
      case 10:
        if (machine.has_transfers())
          machine.end_transfer(*rc::gen::inRange(0u, 99u), *rc::gen::inRange(0, 6) == 0);
        else
          machine.protect_all_but(*rc::gen::inRange(0u, 4 * KeepingMachine::kBlocks));
        break;
      default:
        if (!machine.sees.empty())
          machine.drop(
              std::next(machine.sees.begin(), *rc::gen::inRange<int>(0, static_cast<int>(machine.sees.size())))->first);
    }
    machine.check();
  }
  while (!machine.sees.empty()) machine.drop(machine.sees.begin()->first);
  while (machine.has_transfers()) machine.end_transfer(0, false);
  machine.check();
  RC_ASSERT(!machine.kept.is_needed());
}

// Six blocks that are in memory, all of them wanted.
struct SixWanted {
  std::vector<std::uint32_t> started;  // transfers
  std::vector<std::byte*> given_up;    // frames
  Bytes2M memory = new_block();
  Bytes2M buffers = std::make_unique<std::byte[]>(KeptBlocks::kMostWrites * kBlockBytes.value);
  std::uint32_t slot = 0;
  KeptBlocks kept{6,
                  buffers.get(),
                  0,
                  {.place = [this](BlockId) { return KeptBlocks::Place{.bytes = memory.get()}; },
                   .protect = [](BlockId) { return KeptBlocks::Found{true, true}; },
                   .is_in_pieces = [](BlockId) { return false; },
                   .copy_to_slot = [](BlockId, std::uint32_t) { return false; },
                   .take_slot = [this] { return std::optional(slot++); },
                   .give_back_slot = [](std::uint32_t) {},
                   .slot_is_ours = [](BlockId) {},
                   .free_frame = [this](std::byte* frame) { given_up.push_back(frame); },
                   .start = [this](const Transfer& transfer) { started.push_back(transfer.id); }}};
  SixWanted() {
    kept.allow(6);
    EXPECT_EQ(kept.take().could_want, 6u);
  }
};

TEST(KeptBlocks, WhoeverFindsNoBufferWaitsForOneWriteOnly) {
  SixWanted six;
  for (std::uint32_t id = 0; id < KeptBlocks::kMostWrites; ++id) EXPECT_TRUE(six.kept.keep({id}));
  EXPECT_EQ(six.started.size(), KeptBlocks::kMostWrites);
  EXPECT_FALSE(six.kept.keep({4}));
  EXPECT_TRUE(six.kept.keep({0}));  // It is kept already.
  six.kept.ended(six.started[2], 0);
  EXPECT_TRUE(six.kept.keep({4}));
  EXPECT_FALSE(six.kept.keep({5}));
  EXPECT_EQ(six.started.back(), six.started[2]);
}

TEST(KeptBlocks, FramesAreWrittenInTurn) {
  SixWanted six;
  std::array<std::byte, 6> frames{};
  for (std::uint32_t id = 0; id < 6; ++id) six.kept.take_frame({id}, &frames[id]);
  EXPECT_EQ(six.started.size(), KeptBlocks::kMostWrites);
  six.kept.ended(six.started[1], 0);
  six.kept.ended(six.started[3], EIO);
  EXPECT_EQ(six.started.size(), 6u);
  EXPECT_EQ(six.given_up, (std::vector{&frames[1], &frames[3]}));
}

}  // namespace
}  // namespace spillway
