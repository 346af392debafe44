#include "executor/migration.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/check.h"

namespace spillway {
namespace {

// Blocks whose reads have failed this often in a row are lost.
constexpr std::uint32_t kMostFailedReads = 4;

template <class F>
void for_each_block(BlockRange blocks, F&& call) {
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value) call(block);
}

void drop_front(BlockRange& range, std::uint32_t count) {
  range.first.value += count;
  range.count -= count;
}

// Joins the command to the one before it where both do the same to neighbouring blocks.
void discard(BlockId block, Tier tier, std::vector<Command>& out) {
  if (!out.empty())
    if (auto* last = std::get_if<Discard>(&out.back()); last && last->tier == tier && last->blocks.end() == block) {
      ++last->blocks.count;
      return;
    }
  out.push_back(Discard{{block, 1}, tier});
}

}  // namespace

Migration::Migration(PageTable table, MigrationOptions options, ProtectionOptions protection)
    : table_(std::move(table)),
      options_(options),
      protection_(table_, protection),
      plan_{.keeps_copies = options.keeps_copies},
      left_at_(table_.block_count()) {
  CHECK(options_.chunk_blocks > 0 && options_.planned_in_flight > 0);
  // A chunk starts when there is room for all of it, so it must stay small beside the device.
  const std::uint64_t quarter = table_.capacity(Tier::device).value / table_.block_bytes().value / 4;
  if (options_.whole_tensors_of) tensors_.emplace(*options_.whole_tensors_of);
  options_.chunk_blocks = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(quarter, 1, options_.chunk_blocks));
}

void Migration::retain(BlockRange blocks) {
  for_each_block(blocks, [&](BlockId block) {
    table_.retain(block);
    if (!ready_frames_.empty()) ready_frames_.erase(block);
  });
  foresight_.used(blocks);
  if (blocks.count > 0 && on_device(table_.state(blocks.first))) uses_tensor(blocks);
}

void Migration::hold(BlockRange blocks) {
  for_each_block(blocks, [&](BlockId block) {
    table_.hold(block);
    if (is_piece(block)) undropped_.insert(block);
  });
}

void Migration::release(BlockRange blocks, std::vector<Command>& out) {
  for_each_block(blocks, [&](BlockId block) {
    table_.release(block);
    if (!table_.live(block)) bury(block, out);
  });
  // Another one may live there by now, which has its bytes.
  if (tensors_ && blocks.count > 0 && !table_.live(blocks.first)) tensors_->gone(blocks);
}

void Migration::bury(BlockId block, std::vector<Command>& out) {
  CHECK(!table_.live(block));
  drop_planned_evictions({block, 1});  // They are not for the next tensor there.
  if (table_.is_split(block)) return bury_pieces(block, out);
  switch (table_.state(block)) {
    case BlockState::empty:
    case BlockState::arriving:
      return;  // Dropped on arrival.
    case BlockState::leaving:
      return recall(block, out);
    case BlockState::clean:
      drop_copy(block, out);
      [[fallthrough]];
    case BlockState::resident:
      if (options_.keep_dead_blocks && !is_piece(block)) return foresight_.died(block);
      return drop(block, out);
    case BlockState::stored:
      discard(block, table_.lower(block), out);
      return table_.drop(block);
    case BlockState::in_pieces:
      CHECK(false && "a piece is not split");
  }
}

// What is below stays there until the block is given up as a whole.
void Migration::bury_pieces(BlockId block, std::vector<Command>& out) {
  for_each_block(pieces_of(block), [&](BlockId piece) {
    const BlockState state = table_.state(piece);
    if (state == BlockState::leaving) recall(piece, out);
    if (!on_device(state)) return;
    if (state == BlockState::clean) drop_copy(piece, out);
    drop(piece, out);
  });
  dead_in_pieces_.insert(block);
}

// The machine has refused no drop of a piece, or it would have said so by now.
bool Migration::is_below(BlockId block) const {
  if (!table_.is_below(block) || split_.at(block).dropped_at == event_) return false;
  return std::ranges::none_of(
      undropped_, [&](BlockId piece) { return block_of(piece) == block && table_.state(piece) == BlockState::empty; });
}

void Migration::give_up_dead_pieces(std::vector<Command>& out) {
  std::erase_if(dead_in_pieces_, [&](BlockId block) {
    if (!table_.is_split(block) || table_.live(block)) return true;
    if (!is_below(block)) return false;
    forget_pieces(block);
    discard(block, Tier::ssd, out);
    table_.drop(block);
    return true;
  });
}

void Migration::forget_pieces(BlockId block) {
  protection_.forget(pieces_of(block));
  split_.erase(block);
}

void Migration::drop(BlockId dead, std::vector<Command>& out) {
  CHECK(!table_.live(dead));  // It is gone for good.
  if (!ready_frames_.empty()) ready_frames_.erase(dead);
  if (is_piece(dead)) split_.at(block_of(dead)).dropped_at = event_;
  discard(dead, Tier::device, out);
  table_.drop(dead);
}

void Migration::drop_copy(BlockId block, std::vector<Command>& out) {
  discard(block, table_.lower(block), out);
  table_.drop_copy(block);
}

void Migration::written(BlockRange blocks, std::vector<Command>& out) {
  for_each_block(blocks, [&](BlockId block) {
    const BlockState state = table_.state(block);
    if (state == BlockState::in_pieces) return written(pieces_of(block), out);
    if (state == BlockState::clean) drop_copy(block, out);
    // A machine maps the blocks of a move one after the other, and tells when it has mapped the last.
    if (state == BlockState::arriving) changed_on_the_way_.insert(block);
  });
}

void Migration::recall(BlockId block, std::vector<Command>& out) {
  for (Flight& flight : flights_) {
    if (!flight.move.blocks.contains(block)) continue;
    if (!flight.recalled) out.push_back(Cancel{flight.move.id});
    flight.recalled = true;
    return;
  }
  CHECK(false && "a leaving block is in flight");
}

void Migration::used(BlockRange blocks) {
  const BlockId first = block_of(blocks.first), last = block_of({blocks.end().value - 1});
  foresight_.used({first, last.value - first.value + 1});
}

bool Migration::faulted(BlockId id, StreamId stream, std::vector<Command>& out) {
  const BlockId block = block_of(id);
  CHECK(!is_piece(id) || table_.is_split(block));
  const bool is_stored = table_.state(block) == BlockState::stored && table_.lower(block) == Tier::ssd;
  // All that a launch needs stays, or is to stay once it comes: the next one told would take the room of this one.
  if (!options_.splits_blocks) protection_.faulted_in(stream, {block, 1});
  if (stream == kNobody) {
    want({id, 1}, Urgency::fault, stream, out);
  } else if (is_piece(id) && has_left_running_kernel(block)) {
    const bool comes = table_.state(id) == BlockState::arriving;
    const BlockRange pieces = comes ? BlockRange{id, 1} : with_read_ahead(id);
    if (!comes) note_arrival(pieces);
    want(pieces, Urgency::fault, stream, out);
  } else if (is_stored && options_.splits_blocks && has_left_running_kernel(block)) {
    split(block, out);
    return true;
  } else {
    want({block, 1}, Urgency::fault, stream, out);
  }
  return false;
}

BlockRange Migration::free_to_touch(BlockRange blocks) const {
  BlockRange free{blocks.first, 0};
  if (!urgent_.empty() || kernel_is_oversized()) return free;
  // What may be on its way up next, or made next, finds room all the same.
  Bytes needed = births_ahead_.value_or(Bytes{});
  for (const Tier from : {Tier::host, Tier::ssd})
    if (!prefetches_[from].empty() && planned_in_flight_(from, Tier::device) < options_.planned_in_flight)
      needed += table_.block_bytes() * options_.chunk_blocks;
  for (; free.count < blocks.count && table_.state(free.end()) == BlockState::empty; ++free.count) {
    needed += table_.bytes(free.end());
    if (table_.room(Tier::device) < needed) break;
  }
  return free;
}

void Migration::touched_first(BlockRange blocks, StreamId stream, std::vector<BlockRange>& arrived,
                              std::vector<Command>& out) {
  used(blocks);
  populate(blocks, out);
  protection_.faulted_in(stream, blocks);
  arrived.push_back(blocks);
}

// Whoever waits for it faults on a piece next.
void Migration::split(BlockId block, std::vector<Command>& out) {
  table_.split(block);
  split_.emplace(block, Pieces{});
  last_split_left_at_ = std::max(last_split_left_at_, left_at_[block.value]);
  out.push_back(Split{block});
}

// A kernel may go through many rows at a time, each a little further. Where it goes on right after what came before, as
// many come again: twice as many if that was so lately that more for each row find room, half if it was long ago.
BlockRange Migration::with_read_ahead(BlockId piece) const {
  const BlockId before{piece.value - 1};
  const auto of = split_.find(block_of(before));
  if (piece == BlockId{kFirstPiece} || of == split_.end() || !on_device(table_.state(before))) return {piece, 1};
  const Piece& last = of->second.each[place_in_block(before)];
  const Bytes since = came_ - last.came_at;
  std::uint32_t count = last.came_after;
  if (since * 8 < table_.capacity(Tier::device))
    count *= 2;
  else if (since * 2 > table_.capacity(Tier::device))
    count /= 2;
  count = std::clamp(count, 1u, kPiecesPerBlock - place_in_block(piece));
  std::uint32_t stored = 1;
  while (stored < count && table_.state({piece.value + stored}) == BlockState::stored) ++stored;
  return {piece, stored};
}

// What has left so short a time ago that it would still be here, were everything else not kept, comes back.
void Migration::note_arrival(BlockRange pieces) {
  auto& each = split_.at(block_of(pieces.first)).each;
  for_each_block(pieces, [&](BlockId id) {
    if (table_.state(id) != BlockState::stored) return;
    Piece& piece = each[place_in_block(id)];
    table_.comes_back(id, piece.left_at > Bytes{} && left_ - piece.left_at < table_.capacity(Tier::device));
    came_ += table_.bytes(id);
    piece.came_at = came_;
    piece.came_after = 0;
  });
  each[place_in_block({pieces.end().value - 1})].came_after = pieces.count;
}

bool Migration::join(BlockId block, const Asker& by, std::vector<Command>& out) {
  for_each_block(pieces_of(block), [&](BlockId piece) {
    if (!on_device(table_.state(piece))) return;
    if (victim_tier(piece, out))
      start_move({piece, 1}, Tier::device, Tier::ssd, by, {}, out);
    else if (by.urgency != Urgency::plan)  // It has no other place, and somebody waits for the block.
      failure_ = Failure{Failure::Kind::no_room, table_.bytes(piece)};
  });
  if (!is_below(block)) return false;
  forget_pieces(block);
  table_.join(block);
  out.push_back(Join{block});
  return true;
}

void Migration::want(BlockRange blocks, Urgency urgency, StreamId stream, std::vector<Command>& out) {
  for_each_block(blocks, [&](BlockId block) {
    if (table_.state(block) == BlockState::leaving) recall(block, out);
  });
  used(blocks);
  if (urgency == Urgency::fault) protection_.waits(stream);
  // A signal may end a thread's wait, and then it faults on the same blocks again.
  const auto same = [&](const Wish& wish) {
    const bool same_blocks = is_piece(blocks.first) ? wish.rest.contains(blocks.first) : wish.rest == blocks;
    return wish.by.urgency == urgency && wish.by.stream == stream && same_blocks;
  };
  if (std::ranges::none_of(urgent_, same)) ask({.rest = blocks, .by = {.urgency = urgency, .stream = stream}});
}

void Migration::ask(const Wish& wish) {
  const auto urgency_of = [](const Wish& other) { return other.by.urgency; };
  urgent_.insert(std::ranges::upper_bound(urgent_, wish.by.urgency, {}, urgency_of), wish);
}

bool Migration::eviction_possible(BlockId block) const {
  const bool is_there = on_device(table_.state(block)) || (table_.is_split(block) && !is_used_in_pieces(block));
  return is_there && table_.live(block) && (plan_.shared_blocks || !table_.shared(block)) && !table_.pinned(block);
}

void Migration::begin_plan(FollowOptions options, Foresight foresight) {
  plan_ = options;
  foresight_ = std::move(foresight);
  for (BlockId block{0}; block.value < table_.block_count(); ++block.value)
    if (table_.live(block))
      foresight_.used({block, 1});  // What it knows nothing of counts as used now.
    else if (table_.is_dead(block))
      foresight_.died(block);
  expected_.clear();
  evictions_ = {};
  prefetches_ = {};
}

void Migration::expect(std::span<const std::vector<BlockRange>> births, std::vector<Command>& out) {
  expected_.clear();
  std::set<BlockId> ready;
  for (const std::vector<BlockRange>& kernel : births)
    for (const BlockRange& blocks : kernel)
      for_each_block(blocks, [&](BlockId block) {
        if (ready_frames_.erase(block) > 0) {
          ready.insert(block);
        } else if (!table_.live(block) && table_.state(block) == BlockState::resident) {
          table_.hold(block);  // What died here leaves its frame.
          ready.insert(block);
        } else if (!table_.live(block) && table_.state(block) == BlockState::empty) {
          expected_.push_back({.block = block, .now = &kernel == &births.front()});
        }
      });
  drop_ready_frames(out);
  ready_frames_ = std::move(ready);
}

void Migration::drop_ready_frames(std::vector<Command>& out) {
  while (!ready_frames_.empty()) drop(*ready_frames_.begin(), out);
}

bool Migration::plan_eviction(BlockRange blocks, Tier to) {
  bool any = false;
  for_each_block(blocks, [&](BlockId block) { any |= eviction_possible(block); });
  for (const Tier from : {Tier::host, Tier::ssd}) prefetches_[from].drop_overlapping(blocks);  // for a use that is over
  if (any) evictions_[to].push(blocks);
  return any;
}

bool Migration::plan_prefetch(BlockRange blocks, bool keeps_copy) {
  drop_planned_evictions(blocks);
  bool any = false;
  while (blocks.count > 0) {  // Victims may have scattered the tensor over both tiers: one wish for each run.
    const BlockState state = table_.state(blocks.first);
    const auto is_below = [](BlockState one) {
      return one == BlockState::stored || one == BlockState::leaving || one == BlockState::in_pieces;
    };
    const bool below = is_below(state);
    const Tier tier = table_.lower(blocks.first);
    std::uint32_t count = 1;
    const auto same = [&](BlockId block) {
      const BlockState other = table_.state(block);
      return is_below(other) == below && (!below || table_.lower(block) == tier);
    };
    while (count < blocks.count && same({blocks.first.value + count})) ++count;
    if (below) prefetches_[tier].push({blocks.first, count}, keeps_copy);
    any |= below;
    drop_front(blocks, count);
  }
  return any;
}

void Migration::leave_during(LaunchId launch, BlockRange blocks, bool faults) {
  protection_.give_back(launch, blocks);
  if (!faults) held_.push_back({launch, blocks});
}

void Migration::ended(LaunchId launch) {
  std::erase_if(held_, [&](const Held& held) {
    if (held.launch != launch) return false;
    table_.free_frames(held.left);
    return true;
  });
}

bool Migration::is_under_way(BlockRange blocks, bool up) const {
  if (flights_.empty()) return false;
  const PerTier<MoveQueue>& queues = up ? prefetches_ : evictions_;
  for (const Tier tier : {Tier::host, Tier::ssd})
    if (!queues[tier].overlapping(blocks).empty()) return true;
  const BlockState moving = up ? BlockState::arriving : BlockState::leaving;
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value)
    if (table_.state(block) == moving) return true;
  return false;
}

void Migration::drop_planned_prefetches() { prefetches_ = {}; }

void Migration::drop_planned_evictions(BlockRange blocks) {
  for (const Tier to : {Tier::host, Tier::ssd}) evictions_[to].drop_overlapping(blocks);
}

std::vector<BlockRange> Migration::issued_prefetches(BlockRange blocks) const {
  std::vector<BlockRange> issued = prefetches_.host.overlapping(blocks);
  const std::vector<BlockRange> more = prefetches_.ssd.overlapping(blocks);
  issued.insert(issued.end(), more.begin(), more.end());
  return issued;
}

void Migration::pump(std::vector<BlockRange>& arrived, std::vector<Command>& out) {
  give_up_dead_pieces(out);
  bool all_have_room = serve_urgent(arrived, out);
  while (!all_have_room) {
    const Bytes room = table_.room(Tier::device);
    if (!make_room(out)) break;
    if (table_.room(Tier::device) > room) all_have_room = serve_urgent(arrived, out);  // Dead blocks were dropped.
  }
  if (kernel_is_oversized()) {
    constexpr std::uint64_t kShareFree = 64;  // So that what is wanted need not wait until something has been written.
    evict_ahead({std::min(table_.capacity(Tier::device).value / kShareFree, table_.block_bytes().value)}, out);
    park_next_victims(out);
  }
  all_have_room = all_have_room && serve_expected(arrived, out);
  for (const Tier tier : {Tier::host, Tier::ssd})
    if (!evictions_[tier].empty()) serve_planned_evictions(tier, out);
  if (!all_have_room) return;
  for (const Tier tier : {Tier::host, Tier::ssd})
    if (!prefetches_[tier].empty()) serve_planned_prefetches(tier, out);
  if (births_ahead_ && !table_.dead()) evict_ahead(*births_ahead_, out);  // What is dead makes room at once.
}

void Migration::uses_tensor(BlockRange blocks) {
  if (tensors_) tensors_->used(blocks, bytes_of(blocks));
}

bool Migration::victims_leave() const {
  return std::ranges::any_of(flights_, [](const Flight& flight) {
    return flight.move.to != Tier::device && flight.by.urgency != Urgency::plan;
  });
}

// What is wanted and has no frame. What has begun to come had room for all of it then.
Bytes Migration::wanted(bool with_begun) const {
  Bytes wanted;
  for (const Wish& wish : urgent_) {
    if (wish.begun && !with_begun) continue;
    for_each_block(wish.rest, [&](BlockId block) {
      const BlockState state = table_.state(block);
      if (state == BlockState::stored || state == BlockState::empty) wanted += table_.bytes(block);
    });
  }
  return wanted;
}

// Where whole tensors leave: what is wanted has no room yet, or what leaves for it has not left.
bool Migration::awaits_victims(std::vector<Command>& out) {
  if (victims_leave()) return true;
  const Bytes needed = wanted(false);
  use_dead(needed, out);
  return table_.room(Tier::device) < needed;
}

bool Migration::serve_urgent(std::vector<BlockRange>& arrived, std::vector<Command>& out) {
  if (tensors_ && !urgent_.empty() && awaits_victims(out)) return false;
  std::size_t kept = 0;
  bool room_left = true;  // Whoever came first gets the room first: a small wish must not starve a large one.
  for (std::size_t at = 0; at < urgent_.size(); ++at) {
    const Served served = room_left ? serve(urgent_[at], arrived, out) : Served::waits_for_room;
    room_left &= served != Served::waits_for_room;
    if (served != Served::wholly) urgent_[kept++] = urgent_[at];
  }
  urgent_.erase(urgent_.begin() + static_cast<std::ptrdiff_t>(kept), urgent_.end());
  return room_left;
}

Migration::Served Migration::serve(Wish& wish, std::vector<BlockRange>& arrived, std::vector<Command>& out) {
  while (wish.rest.count > 0) {
    if (!table_.contains({wish.rest.first, 1}) || is_used_in_pieces(wish.rest.first)) {
      // Joined, or split, meanwhile: whoever waits for it has been told to look again.
      if (!is_piece(wish.rest.first)) arrived.push_back({wish.rest.first, 1});
      drop_front(wish.rest, 1);
      continue;
    }
    const BlockState state = table_.state(wish.rest.first);
    if (state == BlockState::in_pieces) {
      if (!join(wish.rest.first, wish.by, out)) return Served::waits_for_move;
      continue;
    }
    if (on_device(state)) {
      // Called back, or brought for somebody else; it must stay until the instruction that touches it is done.
      protect({wish.rest.first, 1}, wish.by);
      drop_front(wish.rest, 1);
      continue;
    }
    // Called back, or on its way for somebody else: the end of that move brings us here again.
    if (state == BlockState::leaving || state == BlockState::arriving) return Served::waits_for_move;
    const BlockRange chunk = first_chunk(wish.rest);
    use_dead(bytes_of(chunk), out);
    if (table_.room(Tier::device) < bytes_of(chunk)) return Served::waits_for_room;
    if (state == BlockState::empty) {
      populate(chunk, out);
      protect(chunk, wish.by);
      arrived.push_back(chunk);
    } else {
      start_move(chunk, table_.lower(chunk.first), Tier::device, wish.by,
                 {.continues = wish.begun, .keeps_copy = plan_.keeps_copies}, out);
      wish.begun = true;
    }
    drop_front(wish.rest, chunk.count);
  }
  return Served::wholly;
}

void Migration::populate(BlockRange blocks, std::vector<Command>& out) {
  for_each_block(blocks, [&](BlockId block) {
    table_.populate(block);
    undropped_.erase(block);
  });
  out.push_back(Populate{blocks});
}

void Migration::protect(BlockRange blocks, const Asker& by) {
  if (by.urgency != Urgency::fault) return;
  if (is_piece(blocks.first)) blocks.count = 1;  // The others were read ahead.
  protection_.faulted_in(by.stream, blocks);
}

BlockRange Migration::first_chunk(BlockRange rest) const {
  const BlockState state = table_.state(rest.first);
  const Tier lower = table_.lower(rest.first);
  std::uint32_t count = 1;
  while (count < rest.count && count < most_in_chunk(rest.first)) {
    const BlockId block{rest.first.value + count};
    const bool below = state == BlockState::stored || state == BlockState::clean;
    if (table_.state(block) != state || (below && table_.lower(block) != lower)) break;
    ++count;
  }
  return {rest.first, count};
}

Bytes Migration::bytes_of(BlockRange blocks) const {
  Bytes sum;
  for_each_block(blocks, [&](BlockId block) { sum += table_.bytes(block); });
  return sum;
}

void Migration::serve_planned_evictions(Tier to, std::vector<Command>& out) {
  MoveQueue& queue = evictions_[to];
  while (!queue.empty() && planned_in_flight_(Tier::device, to) < options_.planned_in_flight) {
    const MoveQueue::Wish wish = queue.front();
    if (!eviction_possible(wish.rest.first)) {
      queue.drop_front(1, false);
      continue;
    }
    if (table_.is_split(wish.rest.first)) {
      join(wish.rest.first, {.urgency = Urgency::plan}, out);
      queue.drop_front(1, true);
      continue;
    }
    BlockRange chunk = first_chunk(wish.rest);
    std::uint32_t count = 1;
    while (count < chunk.count && eviction_possible({chunk.first.value + count})) ++count;
    chunk.count = count;
    const bool has_copy = table_.state(chunk.first) == BlockState::clean && table_.lower(chunk.first) == to;
    if (!has_copy && !drop_copies(to, bytes_of(chunk), out)) return;
    if (!has_copy) written(chunk, out);  // A copy elsewhere is of no use: the plan wants the bytes here.
    start_move(chunk, Tier::device, to, {.urgency = Urgency::plan}, {.continues = wish.begun}, out);
    queue.drop_front(chunk.count, true);
  }
}

void Migration::serve_planned_prefetches(Tier from, std::vector<Command>& out) {
  MoveQueue& queue = prefetches_[from];
  while (!queue.empty() && planned_in_flight_(from, Tier::device) < options_.planned_in_flight) {
    const MoveQueue::Wish wish = queue.front();
    const BlockState state = table_.state(wish.rest.first);
    if (state == BlockState::leaving) return;
    if (state == BlockState::in_pieces && !is_used_in_pieces(wish.rest.first)) {
      if (!join(wish.rest.first, {.urgency = Urgency::plan}, out)) return;
      continue;
    }
    if (state != BlockState::stored) {
      queue.drop_front(1, false);
      continue;
    }
    const BlockRange chunk = first_chunk(wish.rest);
    use_dead(bytes_of(chunk), out);
    births_ahead_ ? evict_ahead(bytes_of(chunk), out) : evict_idle(bytes_of(chunk), out);
    if (table_.room(Tier::device) < bytes_of(chunk)) return;
    start_move(chunk, table_.lower(chunk.first), Tier::device, {.urgency = Urgency::plan},
               {.continues = wish.begun, .keeps_copy = wish.keeps_copy}, out);
    queue.drop_front(chunk.count, true);
  }
}

void Migration::start_move(BlockRange blocks, Tier from, Tier to, const Asker& by, Start how,
                           std::vector<Command>& out) {
  CHECK((from == Tier::device) != (to == Tier::device));
  CHECK(blocks.count > 0 && blocks.count <= most_in_chunk(blocks.first));
  const bool may_keep = from == Tier::ssd || (from == Tier::host && options_.host_keeps_copies);
  const bool keeps_copy = may_keep && (how.keeps_copy || is_piece(blocks.first));
  const bool clean = to == Tier::device ? keeps_copy : table_.state(blocks.first) == BlockState::clean;
  for_each_block(blocks, [&](BlockId block) { to == Tier::device ? table_.fetch(block) : table_.evict(block, to); });
  if (to == Tier::device) used(blocks);
  // Victims are chosen one at a time; neighbours that came one after the other leave together.
  if (!out.empty() && blocks.count == 1 && to != Tier::device)
    if (auto* last = std::get_if<Move>(&out.back());
        last && last->blocks.end() == blocks.first && last->to == to && last->from == from &&
        last->urgency == by.urgency && last->clean == clean && last->blocks.count < most_in_chunk(blocks.first)) {
      ++last->blocks.count;
      if (by.urgency == Urgency::plan) ++planned_in_flight_(from, to);
      CHECK(flights_.back().move.id == last->id);
      flights_.back().move = *last;
      return;
    }
  const Move move{.id = {next_move_++},
                  .blocks = blocks,
                  .from = from,
                  .to = to,
                  .urgency = by.urgency,
                  .first_chunk = !how.continues,
                  .clean = clean};
  if (by.urgency == Urgency::plan) planned_in_flight_(from, to) += blocks.count;
  flights_.push_back({.move = move, .by = by});
  out.push_back(move);
}

Migration::Flight Migration::land(MoveId move) {
  const auto found = std::ranges::find(flights_, move, [](const Flight& flight) { return flight.move.id; });
  CHECK(found != flights_.end());
  const Flight flight = *found;
  flights_.erase(found);
  if (flight.move.urgency == Urgency::plan) {
    std::uint32_t& planned = planned_in_flight_(flight.move.from, flight.move.to);
    CHECK(planned >= flight.move.blocks.count);
    planned -= flight.move.blocks.count;
  }
  return flight;
}

void Migration::done(MoveId id, std::vector<BlockRange>& arrived, std::vector<Command>& out) {
  const Flight flight = land(id);
  const Move& move = flight.move;
  const bool up = move.to == Tier::device;
  const bool dropped = move.clean && !up;
  (dropped ? dropped_clean_ : moved_(move.from, move.to)) += bytes_of(move.blocks);
  if (!dropped) failed_writes_[move.to] = 0;
  for_each_block(move.blocks, [&](BlockId block) {
    if (up)
      move.clean ? table_.copied(block) : table_.fetched(block);
    else
      table_.evicted(block);
    if (up) {
      if (tensors_) tensors_->arrived(block);
      return;
    }
    has_left(block);
    for (Held& held : held_) {
      if (!held.blocks.contains(block)) continue;
      held.left += table_.bytes(block);
      table_.hold_frames(table_.bytes(block));
      return;
    }
  });
  for_each_block(move.blocks, [&](BlockId block) {
    if (!changed_on_the_way_.empty() && changed_on_the_way_.erase(block) > 0) written({block, 1}, out);
    if (!table_.live(block_of(block))) bury(block_of(block), out);
  });
  if (!up || !table_.contains(move.blocks)) return;  // It may have been a dead block's last piece.
  protect(move.blocks, flight.by);
  arrived.push_back(move.blocks);
}

void Migration::has_left(BlockId id) {
  left_since_parked_ += table_.bytes(id);
  if (!is_piece(id)) {
    left_at_[id.value] = ++departures_;
    return;
  }
  left_ += table_.bytes(id);
  split_.at(block_of(id)).each[place_in_block(id)].left_at = left_;
}

void Migration::failed(MoveId id, bool cancelled, std::vector<BlockRange>& arrived, std::vector<Command>& out) {
  const Flight flight = land(id);
  const Move& move = flight.move;
  const bool up = move.to == Tier::device;
  for_each_block(move.blocks, [&](BlockId block) {
    up ? table_.fetch_failed(block) : table_.kept(block);
    if (!up && tensors_) tensors_->arrived(block);
    changed_on_the_way_.erase(block);
  });
  for_each_block(move.blocks, [&](BlockId block) {
    if (!table_.live(block_of(block))) bury(block_of(block), out);
  });
  if (!up) {
    // Or the same few would be chosen again and again, as long as somebody waits for them.
    if (cancelled && !flight.recalled && !options_.splits_blocks)
      for_each_block(move.blocks, [&](BlockId block) { protection_.refused(block); });
    if (move.urgency == Urgency::plan) births_ahead_.reset();  // Not again before the next kernel.
    if (!cancelled && static_cast<std::int32_t>(id.value - failing_since_[move.to].value) >= 0) {
      ++failed_writes_[move.to];
      failing_since_[move.to] = {next_move_};
    }
    if (!flight.recalled) {
      if (!is_piece(move.blocks.first)) foresight_.stayed(move.blocks);
      drop_ready_frames(out);  // They may be what there is no space for.
    }
    arrived.push_back(move.blocks);
  } else if (move.urgency != Urgency::plan) {
    Asker again = flight.by;
    if (!cancelled && ++again.failures >= kMostFailedReads)
      failure_ = Failure{Failure::Kind::unreadable, bytes_of(move.blocks)};
    else
      ask({.rest = move.blocks, .by = again});
  }
}

void Migration::check_invariants() const {
  table_.check_invariants();
  protection_.check_invariants();
  foresight_.check_invariants();
  for (const Tier tier : {Tier::host, Tier::ssd}) {
    evictions_[tier].check_invariants();
    prefetches_[tier].check_invariants();
  }
  CHECK(std::ranges::is_sorted(urgent_, {}, [](const Wish& wish) { return wish.by.urgency; }));
  std::unordered_set<BlockId> in_flight;
  PerLink<std::uint32_t> planned;
  for (const Flight& flight : flights_) {
    const Move& move = flight.move;
    CHECK(table_.contains(move.blocks));
    if (move.urgency == Urgency::plan) planned(move.from, move.to) += move.blocks.count;
    for_each_block(move.blocks, [&](BlockId block) {
      CHECK(in_flight.insert(block).second);
      CHECK(table_.state(block) == (move.to == Tier::device ? BlockState::arriving : BlockState::leaving));
      CHECK(table_.lower(block) == (move.to == Tier::device ? move.from : move.to));
    });
  }
  for (const Tier tier : {Tier::host, Tier::ssd})
    CHECK(planned(tier, Tier::device) == planned_in_flight_(tier, Tier::device) &&
          planned(Tier::device, tier) == planned_in_flight_(Tier::device, tier));
  const auto check = [&](BlockId block) {
    const BlockState state = table_.state(block);
    CHECK(in_flight.contains(block) == (state == BlockState::arriving || state == BlockState::leaving));
    CHECK(!changed_on_the_way_.contains(block) || state == BlockState::arriving);
    CHECK(!ready_frames_.contains(block) || (state == BlockState::resident && !table_.live(block)));
  };
  for (BlockId block{0}; block.value < table_.block_count(); ++block.value) {
    check(block);
    CHECK(split_.contains(block) == table_.is_split(block));
    if (table_.is_split(block)) for_each_block(pieces_of(block), check);
  }
}

}  // namespace spillway
