#include <algorithm>
#include <utility>

#include "executor/migration.h"

namespace spillway {
namespace {

// Victims for this many chunks ahead of the arrival that waits: enough to keep the way out busy while the way in is.
constexpr std::uint64_t kChunksAhead = 4;
// A tier whose writes have failed this often in a row takes no more.
constexpr std::uint32_t kMostFailedWrites = 4;

}  // namespace

// What is dead may always go, and at once: rather than wait for what is leaving.
void Migration::use_dead(Bytes needed, std::vector<Command>& out) {
  while (table_.room(Tier::device) < needed && table_.dead()) drop(*foresight_.dead(table_), out);
}

// Something on its way will arrive or have left, or a launch will end and give up what has left during it.
bool Migration::room_may_come() const {
  return !flights_.empty() || std::ranges::any_of(held_, [](const Held& held) { return held.left > Bytes{}; });
}

// True if it could do something for what waits.
bool Migration::make_room(std::vector<Command>& out) {
  if (tensors_) return make_room_by_tensors(out);
  const Bytes ahead = table_.block_bytes() * (kChunksAhead * options_.chunk_blocks);
  bool some_left = false;
  Bytes needed;
  for (const Wish& wish : urgent_) {
    for (BlockId block = wish.rest.first; block < wish.rest.end() && needed < ahead; ++block.value) {
      if (!table_.contains({block, 1})) continue;  // a piece of what is whole again
      const BlockState state = table_.state(block);
      if (state != BlockState::stored && state != BlockState::empty) continue;
      needed += table_.bytes(block);
      while (table_.room(Tier::device) + table_.leaving() < needed) {
        if (!evict_one(needed, wish.by, !some_left && !room_may_come(), out)) return some_left;
        some_left = true;
      }
    }
  }
  return some_left;
}

bool Migration::make_room_by_tensors(std::vector<Command>& out) {
  if (victims_leave()) return false;
  const Bytes needed = wanted(true);
  bool some_left = false;
  while (table_.room(Tier::device) + table_.leaving() < needed) {
    if (!evict_tensor(needed, !some_left && !room_may_come(), out)) return some_left;
    some_left = true;
  }
  return some_left;
}

bool Migration::evict_tensor(Bytes needed, bool stuck, std::vector<Command>& out) {
  const auto may_leave = [&](BlockRange blocks) {
    bool is_there = false;
    for (BlockId block = blocks.first; block < blocks.end(); ++block.value) {
      if (table_.pinned(block) || table_.shared(block) || table_.state(block) == BlockState::arriving) return false;
      is_there |= on_device(table_.state(block));
    }
    return is_there;
  };
  const Bytes missing = needed - (table_.room(Tier::device) + table_.leaving());
  const auto victim = tensors_->take(missing, may_leave);
  if (!victim) {
    if (stuck) failure_ = Failure{Failure::Kind::device_too_small, missing};
    return false;
  }
  for (BlockId block = victim->first; block < victim->end(); ++block.value) {
    if (!on_device(table_.state(block))) continue;
    const auto to = victim_tier(block, out);
    if (!to) {
      tensors_->arrived(block);
      if (stuck) failure_ = Failure{Failure::Kind::no_room, table_.bytes(block)};
      return false;
    }
    leave(block, *to, {.urgency = Urgency::need}, out);
  }
  return true;
}

void Migration::evict_ahead(Bytes needed, std::vector<Command>& out) {
  // As long as everything fits, nothing leaves for what is only expected.
  const Bytes below = table_.used(Tier::host) + table_.used(Tier::ssd);
  if (below + moved_(Tier::device, Tier::host) + moved_(Tier::device, Tier::ssd) == Bytes{}) return;
  while (table_.room(Tier::device) + table_.leaving() < needed) {
    const auto victim = next_victim();
    if (!victim || !send_away(*victim, Urgency::plan, out)) return;
  }
}

// What came first may be what is used most: it leaves only if nobody touches it while it is among the next victims. Of
// those that are touched no more are tried than a small part of what leaves.
void Migration::park_next_victims(std::vector<Command>& out) {
  constexpr Bytes kLeaveForEach = 128_KiB;
  for (; left_since_parked_ >= kLeaveForEach; left_since_parked_ -= kLeaveForEach) {
    const auto next = table_.next_to_park();
    if (!next) break;
    table_.park(*next);
    out.push_back(Park{*next});
  }
  left_since_parked_ = std::min(left_since_parked_, table_.block_bytes());
}

// No plan has reckoned with what is idle.
void Migration::evict_idle(Bytes needed, std::vector<Command>& out) {
  while (table_.room(Tier::device) + table_.leaving() < needed) {
    const auto idle = foresight_.idle(table_);
    if (!idle || !send_away(*idle, Urgency::plan, out)) return;
  }
}

bool Migration::evict_one(Bytes needed, const Asker& by, bool stuck, std::vector<Command>& out) {
  auto victim = next_victim();
  // A kernel that has not started can wait for what is in flight: it may be a victim once it has landed.
  if (!victim && by.urgency != Urgency::fault && !flights_.empty()) return false;
  while (!victim && protection_.relax(by.stream)) victim = next_victim();
  const auto place = [&] { return victim && table_.live(*victim) ? victim_tier(*victim, out) : std::nullopt; };
  auto to = place();
  const auto another = [&] {
    victim = table_.placed_victim().value_or(*victim);
    to = place();
  };
  const auto has_no_place = [&] { return victim && table_.live(*victim) && !to; };
  if (has_no_place()) another();
  while (stuck && has_no_place() && protection_.relax(by.stream)) another();
  if (!ready_frames_.empty() && (!victim || has_no_place())) victim = *ready_frames_.begin();
  if (!victim) {  // All is in flight, and what arrives can be a victim then; or there is nothing at all.
    if (stuck) failure_ = Failure{Failure::Kind::device_too_small, needed - table_.room(Tier::device)};
    return false;
  }
  if (!table_.live(*victim)) {
    drop(*victim, out);
    return true;
  }
  if (!to) {
    if (stuck) failure_ = Failure{Failure::Kind::no_room, table_.bytes(*victim)};
    return false;
  }
  leave(*victim, *to, by, out);
  return true;
}

// False if it has to stay: no tier takes it, or it is not urgent and the link is busy.
bool Migration::send_away(BlockId victim, Urgency urgency, std::vector<Command>& out) {
  if (!table_.live(victim)) {
    drop(victim, out);
    return true;
  }
  const auto to = victim_tier(victim, out);
  if (!to) return false;
  if (urgency == Urgency::plan && planned_in_flight_(Tier::device, *to) >= options_.planned_in_flight) return false;
  leave(victim, *to, {.urgency = urgency}, out);
  return true;
}

void Migration::leave(BlockId victim, Tier to, const Asker& by, std::vector<Command>& out) {
  if (table_.state(victim) == BlockState::clean && table_.lower(victim) != to) written({victim, 1}, out);
  start_move({victim, 1}, Tier::device, to, by, {}, out);
  for (const Tier planned : {Tier::host, Tier::ssd})  // Should that fail, the plan does not ask again.
    if (is_next_planned(victim, planned)) evictions_[planned].drop_front(1, planned == to);
}

// What need not come back for the plan's sake: what is dead, else what nobody seems to need, else what the plan has
// asked to leave and is not on its way yet.
std::optional<BlockId> Migration::spare_victim() {
  if (const auto dead = foresight_.dead(table_)) return dead;
  if (const auto idle = foresight_.idle(table_)) return idle;
  return planned_victim();
}

// Such a one, or the one that came first if it is dead and held; else what is needed last, as far as that is known.
std::optional<BlockId> Migration::next_victim() {
  if (const auto spare = spare_victim()) return spare;
  if (const auto oldest = table_.victim(); oldest && !table_.live(*oldest) && !ready_frames_.contains(*oldest))
    return oldest;
  if (kernel_is_oversized()) return table_.victim();
  if (const auto piece = table_.piece()) return piece;  // Its block will be wanted whole.
  if (const auto last = foresight_.victim(table_)) return last;
  return table_.victim();
}

std::optional<BlockId> Migration::planned_victim() {
  for (const Tier to : {Tier::host, Tier::ssd}) {
    MoveQueue& queue = evictions_[to];
    for (; !queue.empty(); queue.drop_front(1, false)) {
      const BlockId block = queue.front().rest.first;
      if (!eviction_possible(block)) continue;
      if (!table_.is_split(block)) return block;
      const BlockRange pieces = pieces_of(block);
      for (BlockId piece = pieces.first; piece < pieces.end(); ++piece.value)
        if (on_device(table_.state(piece)) && !table_.pinned(piece)) return piece;
    }
  }
  return std::nullopt;
}

bool Migration::is_next_planned(BlockId block, Tier to) const {
  return !evictions_[to].empty() && evictions_[to].front().rest.first == block;
}

// Host memory is for what comes back soon: plans reckon with it.
std::optional<Tier> Migration::victim_tier(BlockId victim, std::vector<Command>& out) {
  if (is_piece(victim))
    return table_.state(victim) == BlockState::clean || failed_writes_.ssd < kMostFailedWrites
               ? std::optional(Tier::ssd)
               : std::nullopt;
  const Bytes bytes = table_.bytes(victim);
  const bool is_idle = foresight_.is_idle(victim);
  const auto takes = [&](Tier tier) {
    return failed_writes_[tier] < kMostFailedWrites && drop_copies(tier, bytes, out);
  };
  if (table_.state(victim) == BlockState::clean) {
    if (table_.lower(victim) == Tier::host) return Tier::host;
    if (!options_.victims_to_host || is_idle || is_next_planned(victim, Tier::ssd) || !takes(Tier::host))
      return table_.lower(victim);
    return Tier::host;  // It comes back sooner from there, and the copy is worth less than that.
  }
  for (const Tier planned : {Tier::host, Tier::ssd})
    if (is_next_planned(victim, planned) && takes(planned)) return planned;
  if (is_idle && takes(Tier::ssd)) return Tier::ssd;
  if (options_.victims_to_host && takes(Tier::host)) return Tier::host;
  if (takes(Tier::ssd)) return Tier::ssd;
  return std::nullopt;
}

// Until that many bytes have room on the tier; false, and all stay, if even all would not suffice.
bool Migration::drop_copies(Tier tier, Bytes needed, std::vector<Command>& out) {
  if (table_.room(tier) + table_.copies(tier) < needed) return false;
  while (table_.room(tier) < needed) drop_copy(*table_.copy_on(tier), out);
  return true;
}

bool Migration::serve_expected(std::vector<BlockRange>& arrived, std::vector<Command>& out) {
  for (; !expected_.empty(); expected_.pop_front()) {
    const auto [block, now] = expected_.front();
    if (table_.state(block) != BlockState::empty) continue;
    use_dead(table_.bytes(block), out);
    while (table_.room(Tier::device) < table_.bytes(block)) {
      if (table_.room(Tier::device) + table_.leaving() >= table_.bytes(block)) return false;
      // For later kernels the plan makes room itself: what it keeps would only have to come back.
      const auto victim = now ? next_victim() : spare_victim();
      if (!victim || !send_away(*victim, Urgency::need, out)) return false;
    }
    if (!table_.live(block)) {  // Nobody lives in it yet, and it must not go at once.
      table_.hold(block);
      ready_frames_.insert(block);
    }
    table_.populate(block);
    out.push_back(Populate{{block, 1}});
    arrived.push_back({block, 1});
  }
  return true;
}

}  // namespace spillway
