#include "machines/sim/ftl.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace spillway {

FlashWork& FlashWork::operator+=(const FlashWork& other) {
  written += other.written;
  moved += other.moved;
  erased += other.erased;
  return *this;
}

FlashWork operator-(const FlashWork& now, const FlashWork& before) {
  return {now.written - before.written, now.moved - before.moved, now.erased - before.erased};
}

// Note [Room to collect]
// When a superblock is opened, `reserve` - 1 are free, so `superblocks` - `reserve` are full. They hold fewer than
// most_pages() valid pages, since one more is about to be written. So the one with the fewest has a page that is not
// valid; the open one, which is empty, has room for the others; and erasing it fills up the reserve.
Ftl::Ftl(Shape shape) : shape_(shape) {
  CHECK(shape_.reserve >= 1 && shape_.superblocks > shape_.reserve && shape_.pages >= 1);
  superblocks_.emplace_back();
}

Ftl::Extents& Ftl::extents_of(BlockId block) {
  if (block.value >= blocks_.size()) blocks_.resize(block.value + 1);
  return blocks_[block.value];
}

// The first extent that ends behind the page.
Ftl::Extents::iterator Ftl::first_behind(Extents& extents, std::uint32_t page) {
  return std::ranges::upper_bound(extents, page, {}, [](const Extent& extent) { return extent.run.end(); });
}

void Ftl::lose(std::uint32_t superblock, std::uint32_t pages) {
  Superblock& from = superblocks_[superblock];
  CHECK(from.valid >= pages && valid_ >= pages);
  const bool was_full = full_.erase(rank(superblock)) > 0;
  from.valid -= pages;
  valid_ -= pages;
  if (was_full) full_.insert(rank(superblock));
}

void Ftl::discard(BlockId block, PageRun pages) {
  Extents& extents = extents_of(block);
  auto extent = first_behind(extents, pages.first);
  if (extent == extents.end() || pages.count == 0) return;
  if (extent->run.first < pages.first) {  // Its first pages stay.
    const std::uint32_t kept = pages.first - extent->run.first;
    Extent rest = *extent;
    rest.run = {pages.first, extent->run.count - kept};
    rest.at += kept;
    extent->run.count = kept;
    extent = extents.insert(extent + 1, rest);
  }
  auto end = extent;
  for (; end != extents.end() && end->run.end() <= pages.end(); ++end) lose(end->superblock, end->run.count);
  if (end != extents.end() && end->run.first < pages.end()) {  // Its last pages stay.
    const std::uint32_t lost = pages.end() - end->run.first;
    lose(end->superblock, lost);
    end->run = {pages.end(), end->run.count - lost};
    end->at += lost;
  }
  extents.erase(extent, end);
}

// The open superblock must have room for it.
Ftl::Extent Ftl::append(BlockId block, PageRun run) {
  Superblock& open = superblocks_[open_];
  CHECK(run.count <= shape_.pages - open.used);
  const Extent extent{.run = run, .superblock = open_, .at = open.used};
  open.log.push_back({block, run});
  open.used += run.count;
  open.valid += run.count;
  return extent;
}

void Ftl::open_next() {
  CHECK(superblocks_[open_].used == shape_.pages);
  full_.insert(rank(open_));
  if (superblocks_.size() < shape_.superblocks) {
    open_ = static_cast<std::uint32_t>(superblocks_.size());
    superblocks_.emplace_back();
    return;
  }
  CHECK(!free_.empty());
  open_ = free_.begin()->superblock;
  free_.erase(free_.begin());
}

// See Note [Room to collect].
FlashWork Ftl::collect() {
  FlashWork work;
  while (free_superblocks() < shape_.reserve) {
    CHECK(!full_.empty());
    const std::uint32_t victim = full_.begin()->superblock;
    full_.erase(full_.begin());
    std::uint32_t at = 0;
    for (const Written& written : superblocks_[victim].log) {
      Extents& extents = extents_of(written.block);
      const std::uint32_t end_at = at + written.run.count;
      for (auto extent = first_behind(extents, written.run.first);
           extent != extents.end() && extent->run.first < written.run.end(); ++extent) {
        if (extent->superblock != victim || extent->at < at || extent->at >= end_at) continue;
        work.moved += extent->run.count;
        *extent = append(written.block, extent->run);
      }
      at = end_at;
    }
    Superblock& erased = superblocks_[victim];
    ++erased.erased;
    ++work.erased;
    erased.valid = erased.used = 0;
    erased.log.clear();
    free_.insert(rank(victim));
  }
  return work;
}

std::optional<FlashWork> Ftl::write(BlockId block, PageRun pages) {
  Extents& extents = extents_of(block);
  if (valid_ + pages.count > most_pages()) {  // It may have room where it was.
    std::uint64_t held = 0;
    for (const Extent& extent : extents) {
      const std::uint32_t begin = std::max(extent.run.first, pages.first);
      const std::uint32_t end = std::min(extent.run.end(), pages.end());
      if (begin < end) held += end - begin;
    }
    if (valid_ - held + pages.count > most_pages()) return std::nullopt;
  }
  discard(block, pages);
  FlashWork work{.written = pages.count};
  while (pages.count > 0) {
    if (superblocks_[open_].used == shape_.pages) {
      open_next();
      work += collect();
    }
    const PageRun part{pages.first, std::min(pages.count, shape_.pages - superblocks_[open_].used)};
    extents.insert(first_behind(extents, part.first), append(block, part));
    valid_ += part.count;
    pages = {part.end(), pages.count - part.count};
  }
  return work;
}

std::uint32_t Ftl::valid_pages(BlockId block) const {
  std::uint32_t pages = 0;
  if (block.value < blocks_.size())
    for (const Extent& extent : blocks_[block.value]) pages += extent.run.count;
  return pages;
}

std::vector<std::uint32_t> Ftl::erased() const {
  std::vector<std::uint32_t> times;
  for (const Superblock& one : superblocks_) times.push_back(one.erased);
  return times;
}

void Ftl::check_invariants() const {
  using Page = std::pair<std::uint32_t, std::uint32_t>;                        // of a block
  std::vector<std::vector<std::optional<Page>>> written(superblocks_.size());  // and not found in an extent yet
  for (std::uint32_t id = 0; id < superblocks_.size(); ++id)
    for (const Written& one : superblocks_[id].log)
      for (std::uint32_t page = one.run.first; page < one.run.end(); ++page)
        written[id].emplace_back(Page{one.block.value, page});
  std::vector<std::uint32_t> valid(superblocks_.size());
  std::uint64_t all = 0;
  for (std::uint32_t block = 0; block < blocks_.size(); ++block) {
    std::uint32_t page = 0;
    for (const Extent& extent : blocks_[block]) {
      CHECK(extent.run.count > 0 && extent.run.first >= page);
      page = extent.run.end();
      CHECK(extent.at + extent.run.count <= superblocks_.at(extent.superblock).used);
      for (std::uint32_t i = 0; i < extent.run.count; ++i) {
        auto& place = written[extent.superblock].at(extent.at + i);
        CHECK(place == (Page{block, extent.run.first + i}));
        place.reset();
      }
      valid[extent.superblock] += extent.run.count;
      all += extent.run.count;
    }
  }
  CHECK(all == valid_ && valid_ <= most_pages());
  CHECK(free_superblocks() >= shape_.reserve && free_superblocks() + 1 + full_.size() == shape_.superblocks);
  for (std::uint32_t id = 0; id < superblocks_.size(); ++id) {
    const Superblock& one = superblocks_[id];
    CHECK(one.valid == valid[id] && one.valid <= one.used && one.used <= shape_.pages);
    CHECK(written[id].size() == one.used);
    const bool is_free = free_.contains(rank(id)), is_full = full_.contains(rank(id));
    CHECK(is_free + is_full + (id == open_) == 1);
    CHECK(!is_free || one.used == 0);
    CHECK(!is_full || one.used == shape_.pages);
  }
}

}  // namespace spillway
