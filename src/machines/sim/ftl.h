#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"

namespace spillway {

// Pages [first, first + count) of a block.
struct PageRun {
  std::uint32_t first = 0, count = 0;
  std::uint32_t end() const { return first + count; }
};

// What flash has done.
struct FlashWork {
  std::uint64_t written = 0;  // pages that came from outside
  std::uint64_t moved = 0;    // pages that collecting garbage wrote again
  std::uint64_t erased = 0;   // superblocks

  double write_amplification() const {
    return written == 0 ? 1.0 : static_cast<double>(written + moved) / static_cast<double>(written);
  }
  FlashWork& operator+=(const FlashWork& other);
  friend FlashWork operator-(const FlashWork& now, const FlashWork& before);
  friend bool operator==(const FlashWork&, const FlashWork&) = default;
};

// A flash translation layer that maps pages to superblocks. What is written is appended to one open superblock; when it
// is full, the least erased free one is opened. Then, as long as fewer are free than are to be in reserve, garbage is
// collected greedily: of the full superblocks the one with the fewest valid pages, of equal ones the least erased, is
// written again, to the open one, and erased.
//
// This is the table of the simulated SSD, and the only place that knows in which superblock and page a block's bytes
// are (G10 section 4.5: "flash address mappings have been integrated into the page table"). It handles runs of pages: a
// write costs O(runs in the block + log superblocks), however many pages it has. A plain value.
class Ftl {
 public:
  struct Shape {
    std::uint32_t superblocks = 0;
    std::uint32_t pages = 0;    // of each
    std::uint32_t reserve = 1;  // at least one
  };
  explicit Ftl(Shape shape);

  // Pages of the block, over what they held before. Nothing, and nothing has happened, if there is no room.
  std::optional<FlashWork> write(BlockId block, PageRun pages);
  // Nobody will read them again (TRIM). They need not have been written.
  void discard(BlockId block, PageRun pages);

  std::uint64_t valid_pages() const { return valid_; }
  std::uint32_t valid_pages(BlockId block) const;
  std::uint64_t most_pages() const { return std::uint64_t{shape_.superblocks - shape_.reserve} * shape_.pages; }
  std::uint64_t free_superblocks() const { return free_.size() + (shape_.superblocks - superblocks_.size()); }

  std::vector<std::uint32_t> erased() const;  // how often, of each superblock that was ever opened

  // CHECKs everything that must hold between two calls; O(pages). For tests.
  void check_invariants() const;

 private:
  struct Extent {  // of a block: these pages are at `at` and the pages behind it
    PageRun run;
    std::uint32_t superblock = 0, at = 0;
  };
  struct Written {  // to a superblock, in order; how much of it still is valid, the block's extents say
    BlockId block;
    PageRun run;
  };
  struct Superblock {
    std::uint32_t valid = 0;
    std::uint32_t used = 0;
    std::uint32_t erased = 0;  // so often
    std::vector<Written> log;
  };
  using Extents = std::vector<Extent>;  // in the order of their pages
  Extents& extents_of(BlockId block);
  void open_next();
  FlashWork collect();
  Extent append(BlockId block, PageRun run);
  static Extents::iterator first_behind(Extents& extents, std::uint32_t page);
  void lose(std::uint32_t superblock, std::uint32_t pages);

  Shape shape_;
  std::vector<Extents> blocks_;
  std::vector<Superblock> superblocks_;  // those ever opened; the others are free and never erased
  struct Rank {                          // in the order in which superblocks are taken
    std::uint32_t valid, erased, superblock;
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };
  Rank rank(std::uint32_t superblock) const {
    return {superblocks_[superblock].valid, superblocks_[superblock].erased, superblock};
  }
  std::set<Rank> free_;  // of those that were erased
  std::set<Rank> full_;
  std::uint32_t open_ = 0;
  std::uint64_t valid_ = 0;
};

}  // namespace spillway
