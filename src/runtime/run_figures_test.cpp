#include "runtime/run_figures.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway {
namespace {

// What differs is whether all of it is told.
template <int kCase>
struct Record {
  Bytes in, out;
  std::uint64_t count = 0;

  static constexpr auto figures() {
    using Self = Record;
    if constexpr (kCase == 0)
      return std::tuple(Figure{"in", &Self::in}, Untold{&Self::out}, Figure{"count", &Self::count});
    else if constexpr (kCase == 1)
      return std::tuple(Figure{"in", &Self::in}, Figure{"count", &Self::count});
    else
      return std::tuple(Figure{"in", &Self::in}, Figure{"out", &Self::in}, Figure{"count", &Self::count});
  }
};
static_assert(has_all_figures<Record<0>>());
static_assert(!has_all_figures<Record<1>>(), "one is missing");
static_assert(!has_all_figures<Record<2>>(), "one is there twice, another one not");

struct WithGap {
  std::uint64_t count = 0;
  bool planned = false;

  static constexpr auto figures() {
    return std::tuple(Figure{"count", &WithGap::count}, Figure{"planned", &WithGap::planned});
  }
};
static_assert(!has_all_figures<WithGap>());

TEST(RunFigures, ATextIsCutWhereItDoesNotFit) {
  EXPECT_EQ(FixedText<4>().view(), "");
  EXPECT_EQ(FixedText<4>("abc").view(), "abc");
  EXPECT_EQ(FixedText<4>(std::string("abcde")).view(), "abcd");
}

TEST(RunFigures, SomethingHasMovedThatHasLeftTheDevice) {
  MemoryFigures memory;
  memory.moved(Tier::ssd, Tier::device) = memory.moved(Tier::host, Tier::ssd) = 1_MiB;
  EXPECT_FALSE(has_moved(memory));
  for (const Tier below : {Tier::host, Tier::ssd}) {
    MemoryFigures moved = memory;
    moved.moved(Tier::device, below) = Bytes{1};
    EXPECT_TRUE(has_moved(moved));
  }
}

}  // namespace
}  // namespace spillway
