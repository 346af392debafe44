#include "memory/page_table.h"

#include <algorithm>

#include "base/check.h"

namespace spillway {
namespace {

// The rule by state and event, for it is asked several times for each block that moves.
constexpr std::size_t kStates = static_cast<std::size_t>(BlockState::in_pieces) + 1;
constexpr std::size_t kEvents = static_cast<std::size_t>(BlockEvent::join) + 1;
constexpr std::uint8_t kNotAllowed = UINT8_MAX;
constexpr auto kNext = [] {
  std::array<std::array<std::uint8_t, kEvents>, kStates> table{};
  for (std::size_t state = 0; state < kStates; ++state)
    for (std::size_t event = 0; event < kEvents; ++event) {
      const auto to = next(static_cast<BlockState>(state), static_cast<BlockEvent>(event));
      table[state][event] = to ? static_cast<std::uint8_t>(*to) : kNotAllowed;
    }
  return table;
}();

}  // namespace

PageTable::PageTable(PerTier<Bytes> capacity) : capacity_(capacity) {}

void PageTable::add_blocks(std::uint32_t count, Bytes bytes_each) {
  CHECK(bytes_each > Bytes{} && bytes_each <= kMostBlockBytes);
  block_bytes_ = std::max(block_bytes_, bytes_each);
  CHECK(count <= kMostBlocks - block_count());
  blocks_.resize(blocks_.size() + count, Block{.bytes = static_cast<std::uint32_t>(bytes_each.value)});
  pieces_.resize(blocks_.size());
}

bool PageTable::contains(BlockRange blocks) const {
  if (!is_piece(blocks.first))
    return blocks.first.value <= block_count() && blocks.count <= block_count() - blocks.first.value;
  const std::uint32_t before_end = blocks.first.value - kFirstPiece + blocks.count - 1;  // Wraps where it is empty.
  const std::uint32_t last = before_end / kPiecesPerBlock;
  if (blocks.count == 0 || last >= block_count()) return false;
  for (std::uint32_t block = block_of(blocks.first).value; block <= last; ++block)
    if (pieces_[block] == nullptr) return false;
  return true;
}

template <class F>
void PageTable::for_each_piece(BlockId block, F&& call) {
  if (is_piece(block) || pieces_[block.value] == nullptr) return;
  const BlockRange pieces = pieces_of(block);
  for (BlockId piece = pieces.first; piece != pieces.end(); ++piece.value) call(piece);
}

void PageTable::split(BlockId id) {
  Block& block = at(id);
  CHECK(!is_piece(id) && block.lower == Tier::ssd && Bytes{block.bytes} <= kBlockBytes);
  step(block, BlockEvent::split);
  auto pieces = std::make_unique<Pieces>();
  std::uint32_t rest = block.bytes;
  for (Block& piece : *pieces) {
    piece.bytes = std::min(rest, static_cast<std::uint32_t>(kPieceBytes.value));
    rest -= piece.bytes;
    if (piece.bytes > 0) piece.state = BlockState::stored;
    piece.lower = Tier::ssd;
    piece.tensors = block.tensors;
  }
  pieces_[id.value] = std::move(pieces);
}

void PageTable::join(BlockId id) {
  step(at(id), BlockEvent::join);
  end_pieces(id);
}

void PageTable::end_pieces(BlockId id) {
  for_each_piece(id, [&](BlockId piece) {
    CHECK((state(piece) == BlockState::stored || state(piece) == BlockState::empty) && !pinned(piece));
  });
  pieces_[id.value].reset();
}

void PageTable::comes_back(BlockId piece, bool does) {
  CHECK(is_piece(piece) && !at(piece).listed);
  at(piece).comes_back = does;
}

void PageTable::retain(BlockId id) {
  for_each_piece(id, [&](BlockId piece) { retain_one(piece); });
  retain_one(id);
}

void PageTable::retain_one(BlockId id) {
  Block& block = at(id);
  const bool revived = block.tensors == 0 && block.listed;
  if (revived) unlist(id.value);
  ++block.tensors;
  block.held = false;
  if (revived) list(id.value);
}

void PageTable::release(BlockId id) {
  for_each_piece(id, [&](BlockId piece) { release_one(piece); });
  release_one(id);
}

void PageTable::release_one(BlockId id) {
  Block& block = at(id);
  CHECK(block.tensors > 0);
  const bool dies = block.tensors == 1 && block.listed;
  if (dies) unlist(id.value);
  --block.tensors;
  if (dies) list(id.value);
}

void PageTable::hold(BlockId id) {
  Block& block = at(id);
  if (block.tensors > 0 || block.held) return;
  if (block.listed) unlist(id.value);
  block.held = true;
  if (on_device(block.state)) list(id.value);
}

void PageTable::pin(BlockId id) { ++at(id).pins; }

void PageTable::unpin(BlockId id) {
  Block& block = at(id);
  CHECK(block.pins > 0);
  if (--block.pins > 0 || !block.listed) return;
  // If it stands before the cursor, not everything there is pinned any more.
  const bool is_before = cursor_ == kNone || block.listed_at < at({cursor_}).listed_at;
  if (is_before && order_of(block) == &live_) cursor_ = id.value;
}

void PageTable::populate(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::populate);
  take(Tier::device, id);
  list(id.value);
}

void PageTable::evict(BlockId id, Tier to) {
  CHECK(to != Tier::device);
  Block& block = at(id);
  const bool has_copy = block.state == BlockState::clean;
  CHECK(!has_copy || block.lower == to);
  step(block, BlockEvent::evict);
  unlist(id.value);
  block.parked = false;
  CHECK(!is_piece(id) || to == Tier::ssd);
  if (has_copy)
    drop_copy(id.value);
  else
    take(to, id);
  block.lower = to;
  leaving_ += Bytes{block.bytes};
}

void PageTable::evicted(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::evicted);
  leaving_ -= Bytes{block.bytes};
  give(Tier::device, id);
}

void PageTable::kept(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::kept);
  leaving_ -= Bytes{block.bytes};
  give(block.lower, id);
  list(id.value);
}

void PageTable::fetch(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::fetch);
  take(Tier::device, id);
}

void PageTable::fetched(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::fetched);
  give(block.lower, id);
  list(id.value);
}

void PageTable::copied(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::copied);
  if (!is_piece(id)) {
    CHECK(copies_[block.lower].insert(id.value).second);
    copy_bytes_[block.lower] += Bytes{block.bytes};
  }
  list(id.value);
}

void PageTable::drop_copy(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::drop_copy);
  drop_copy(id.value);
  give(block.lower, id);
}

// Nothing else could have the place of a piece's copy.
void PageTable::drop_copy(std::uint32_t index) {
  if (is_piece({index})) return;
  const Block& block = blocks_[index];
  CHECK(copies_[block.lower].erase(index) == 1);
  copy_bytes_[block.lower] -= Bytes{block.bytes};
}

std::optional<BlockId> PageTable::placed_victim() const {
  if (const auto one = piece()) return one;
  for (const auto* places : {&copies_.host, &copies_.ssd})
    for (const std::uint32_t index : *places)
      if (!pinned({index}) && live({index})) return BlockId{index};
  return std::nullopt;
}

std::optional<BlockId> PageTable::piece() const {
  for (const std::uint32_t index : listed_pieces_)
    if (!pinned({index}) && live({index})) return BlockId{index};
  return std::nullopt;
}

void PageTable::fetch_failed(BlockId id) {
  Block& block = at(id);
  step(block, BlockEvent::fetch_failed);
  give(Tier::device, id);
}

void PageTable::drop(BlockId id) {
  Block& block = at(id);
  const bool on_device = block.state == BlockState::resident;
  step(block, BlockEvent::drop);
  if (on_device) unlist(id.value);
  if (!is_piece(id)) end_pieces(id);
  block.held = block.parked = false;
  give(on_device ? Tier::device : block.lower, id);
}

void PageTable::place(BlockId id, Tier tier) {
  Block& block = at(id);
  CHECK(block.state == BlockState::empty && !is_piece(id));
  if (tier == Tier::device) return populate(id);
  take(tier, id);
  block.state = BlockState::stored;
  block.lower = tier;
}

std::optional<BlockId> PageTable::victim() {
  if (dead_.head != kNone) return BlockId{dead_.head};
  while (cursor_ != kNone && at({cursor_}).pins > 0) cursor_ = at({cursor_}).next;
  const bool few_are_new = live_bytes_ * kShareOfNew < capacity(Tier::device);
  std::uint32_t first = parked_.head;
  while (first != kNone && at({first}).pins > 0) first = at({first}).next;
  const bool are_some_parked_lately = parked_count_ < most_parked() && cursor_ != kNone && is_piece({cursor_});
  if (first == kNone || are_some_parked_lately) first = cursor_;
  if (first != kNone && (come_back_.empty() || !few_are_new)) return BlockId{first};
  const std::size_t count = come_back_.size();
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;
  for (std::size_t tries = 0, place = (random_ >> 32) * count >> 32; tries < count; ++tries, ++place)
    if (const BlockId id{come_back_[place % count]}; !pinned(id)) return id;
  return first == kNone ? std::nullopt : std::optional(BlockId{first});
}

std::optional<BlockId> PageTable::next_to_park() {
  while (cursor_ != kNone && at({cursor_}).pins > 0) cursor_ = at({cursor_}).next;
  const bool can_park = parked_count_ < most_parked() && cursor_ != kNone && !is_piece({cursor_}) && live({cursor_});
  return can_park ? std::optional(BlockId{cursor_}) : std::nullopt;
}

void PageTable::park(BlockId id) {
  CHECK(at(id).listed && live(id) && !is_piece(id));
  unlist(id.value);
  at(id).parked = true;
  list(id.value);
}

void PageTable::touched(BlockId id) {
  Block& block = at(id);
  if (!block.parked) return;
  unlist(id.value);
  block.parked = false;
  list(id.value);
}

std::uint64_t PageTable::residency_hash(BlockRange blocks, std::uint64_t seed) const {
  CHECK(contains(blocks));
  std::uint64_t hash = seed;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value) {
    const Block& block = at(id);
    if (block.state == BlockState::in_pieces) hash = residency_hash(pieces_of(id), hash);
    const bool below = block.state != BlockState::empty && block.state != BlockState::resident;
    const auto value =
        static_cast<std::uint64_t>(block.state) * 3 + (below ? static_cast<std::uint64_t>(block.lower) : 0);
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

void PageTable::list(std::uint32_t index) {
  Block& block = at({index});
  CHECK(!block.listed);
  block.listed = true;
  if (is_piece({index})) listed_pieces_.insert(index);
  Order* order = order_of(block);
  if (order == nullptr) {
    block.place = static_cast<std::uint32_t>(come_back_.size());
    return come_back_.push_back(index);
  }
  block.listed_at = ++listings_;
  block.previous = order->tail;
  block.next = kNone;
  if (order->tail == kNone)
    order->head = index;
  else
    at({order->tail}).next = index;
  order->tail = index;
  if (order == &dead_) return;
  live_bytes_ += Bytes{block.bytes};
  if (order == &parked_) ++parked_count_;
  if (order == &live_ && cursor_ == kNone) cursor_ = index;
}

void PageTable::unlist(std::uint32_t index) {
  Block& block = at({index});
  CHECK(block.listed);
  block.listed = false;
  if (is_piece({index})) listed_pieces_.erase(index);
  Order* order = order_of(block);
  if (order == nullptr) {
    at({come_back_.back()}).place = block.place;
    come_back_[block.place] = come_back_.back();
    return come_back_.pop_back();
  }
  if (cursor_ == index) cursor_ = block.next;
  if (block.previous == kNone)
    order->head = block.next;
  else
    at({block.previous}).next = block.next;
  if (block.next == kNone)
    order->tail = block.previous;
  else
    at({block.next}).previous = block.previous;
  if (order != &dead_) live_bytes_ -= Bytes{block.bytes};
  if (order == &parked_) --parked_count_;
}

void PageTable::step(Block& block, BlockEvent event) {
  const std::uint8_t to = kNext[static_cast<std::size_t>(block.state)][static_cast<std::size_t>(event)];
  CHECK(to != kNotAllowed);
  block.state = static_cast<BlockState>(to);
}

void PageTable::hold_frames(Bytes bytes) {
  CHECK(room(Tier::device) >= bytes);
  used_.device += bytes;
  held_frames_ += bytes;
}

void PageTable::free_frames(Bytes bytes) {
  CHECK(held_frames_ >= bytes);
  used_.device -= bytes;
  held_frames_ -= bytes;
}

// The lower tier has room for a split block as a whole.
void PageTable::take(Tier tier, BlockId id) {
  if (is_piece(id) && tier != Tier::device) return;
  if (is_piece(id)) ++at(block_of(id)).pieces_up;
  const Bytes bytes{at(id).bytes};
  CHECK(room(tier) >= bytes);
  used_[tier] += bytes;
  peak_[tier] = std::max(peak_[tier], used_[tier]);
}

void PageTable::give(Tier tier, BlockId id) {
  if (is_piece(id) && tier != Tier::device) return;
  if (is_piece(id)) --at(block_of(id)).pieces_up;
  used_[tier] -= Bytes{at(id).bytes};
}

void PageTable::check_invariants() const {
  PerTier<Bytes> used, copies;
  Bytes leaving;
  std::uint32_t resident = 0;
  const auto check = [&](BlockId id) {
    const Block& block = at(id);
    const Bytes bytes{block.bytes};
    const bool below = block.state != BlockState::empty && block.state != BlockState::resident;
    const bool above = below ? block.state != BlockState::stored && block.state != BlockState::in_pieces
                             : block.state != BlockState::empty;
    if (above) used.device += bytes;
    if (below && !is_piece(id)) used[block.lower] += bytes;
    if (block.state == BlockState::leaving) leaving += bytes;
    CHECK(block.listed == on_device(block.state) && (!block.parked || block.listed));
    const bool clean = block.state == BlockState::clean && !is_piece(id);
    if (clean) copies[block.lower] += bytes;
    for (const Tier tier : kTiers) CHECK(copies_[tier].contains(id.value) == (clean && block.lower == tier));
    resident += block.listed;
    CHECK(listed_pieces_.contains(id.value) == (is_piece(id) && block.listed));
  };
  for (BlockId id{0}; id.value < block_count(); ++id.value) {
    check(id);
    const bool is_in_pieces = pieces_[id.value] != nullptr;
    CHECK(is_in_pieces == is_split(id));
    const BlockRange pieces = pieces_of(id);
    std::uint32_t up = 0;
    for (BlockId piece = pieces.first; is_in_pieces && piece != pieces.end(); ++piece.value) {
      check(piece);
      const Block& one = at(piece);
      up += one.state != BlockState::stored && one.state != BlockState::empty;
      CHECK(one.tensors == at(id).tensors && one.lower == Tier::ssd &&
            (one.bytes > 0 || one.state == BlockState::empty));
    }
    CHECK(up == at(id).pieces_up);
  }
  used.device += held_frames_;
  CHECK(used == used_ && copies == copy_bytes_ && leaving == leaving_);
  for (const Tier tier : kTiers) CHECK(used_[tier] <= capacity_[tier] && used_[tier] <= peak_[tier]);
  std::uint32_t listed = 0;
  Bytes live_bytes;
  std::uint32_t parked = 0;
  for (const Order* order : {&live_, &dead_, &parked_}) {
    bool before_cursor = order == &live_;
    std::uint32_t previous = kNone;
    for (std::uint32_t index = order->head; index != kNone; previous = index, index = at({index}).next, ++listed) {
      const Block& block = at({index});
      if (index == cursor_) before_cursor = false;
      CHECK(block.listed && block.previous == previous);
      if (order != &dead_) live_bytes += Bytes{block.bytes};
      parked += order == &parked_;
      CHECK(order_of(block) == order);
      CHECK(block.tensors == 0 || !block.held);
      CHECK(!before_cursor || block.pins > 0);
    }
    CHECK(order->tail == previous);
  }
  CHECK(live_bytes == live_bytes_ && parked == parked_count_ && listed + come_back_.size() == resident);
  for (std::uint32_t place = 0; place < come_back_.size(); ++place) {
    const Block& block = at({come_back_[place]});
    CHECK(block.listed && order_of(block) == nullptr && block.place == place);
  }
}

}  // namespace spillway
