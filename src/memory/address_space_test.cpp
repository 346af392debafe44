#include "memory/address_space.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

namespace spillway {
namespace {

TEST(AddressSpace, TakesTheSmallestHoleThatFitsAndOfEqualOnesTheLowest) {
  AddressSpace space(Bytes{1000}, Bytes{1});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(space.take(Bytes{100}), i * 100u);
  space.give_back(100, Bytes{100});
  space.give_back(200, Bytes{100});
  space.give_back(500, Bytes{100});
  space.give_back(700, Bytes{100});
  EXPECT_EQ(space.take(Bytes{60}), 500u);
  EXPECT_EQ(space.take(Bytes{100}), 700u);
  EXPECT_EQ(space.take(Bytes{150}), 100u);
  EXPECT_EQ(space.take(Bytes{150}), std::nullopt);
}

TEST(AddressSpace, HolesGrowTogether) {
  AddressSpace space(Bytes{300}, Bytes{1});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(space.take(Bytes{100}));
  space.give_back(0, Bytes{100});
  space.give_back(200, Bytes{100});
  space.give_back(100, Bytes{100});
  EXPECT_EQ(space.take(Bytes{300}), 0u);
}

TEST(AddressSpace, RefusesWhatIsLargerThanEverything) {
  AddressSpace space(Bytes{4096}, Bytes{64});
  EXPECT_EQ(space.take(Bytes{UINT64_MAX}), std::nullopt);
  EXPECT_EQ(space.take(Bytes{4097}), std::nullopt);
  EXPECT_EQ(space.take(Bytes{1}), 0u);
  EXPECT_EQ(space.take(Bytes{1}), 64u);
}

TEST(AddressSpaceProperty, NothingOverlapsNothingIsLostAndTheSameProgramGetsTheSameAddresses) {
  EXPECT_TRUE(rc::check([] {
    constexpr std::uint64_t kSize = 64 * 256;
    const auto program = *rc::gen::container<std::vector<std::pair<bool, std::uint16_t>>>(
        rc::gen::arbitrary<std::pair<bool, std::uint16_t>>());
    std::vector<std::vector<std::uint64_t>> runs;
    AddressSpace space(Bytes{kSize}, Bytes{64});
    for (int run = 0; run < 2; ++run) {
      std::vector<std::uint64_t> given;
      std::vector<std::pair<std::uint64_t, Bytes>> live;
      for (const auto& [take, number] : program) {
        if (take || live.empty()) {
          const Bytes bytes{1u + number % 2048u};
          const auto offset = space.take(bytes);
          if (!offset) continue;
          RC_ASSERT(*offset % 64 == 0 && *offset + bytes.value <= kSize);
          for (const auto& [other, size] : live)
            RC_ASSERT(*offset + bytes.value <= other || other + size.value <= *offset);
          live.emplace_back(*offset, bytes);
          given.push_back(*offset);
        } else {
          const std::size_t victim = number % live.size();
          space.give_back(live[victim].first, live[victim].second);
          live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
        }
      }
      for (const auto& [offset, bytes] : live) space.give_back(offset, bytes);
      const auto all = space.take(Bytes{kSize});  // All holes have joined.
      RC_ASSERT(all.has_value());
      space.give_back(*all, Bytes{kSize});
      runs.push_back(given);
    }
    RC_ASSERT(runs[0] == runs[1]);
  }));
}

}  // namespace
}  // namespace spillway
