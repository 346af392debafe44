#include "policies/deepum.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace spillway {
namespace {

constexpr StreamId kStream{0};

// Kernels by name, tensors by number: each in two blocks of its own.
class Script {
 public:
  explicit Script(std::uint32_t device_blocks = 1000, Bytes block = kBlockBytes)
      : policy_(make_deepum(block * device_blocks, {})), table_({block * device_blocks, {}, {}}) {
    table_.add_blocks(1000, block);
  }

  void make(std::uint32_t tensor, std::uint32_t first_block) {
    policy_->allocated({{tensor}, {{first_block}, 2}, {tensor + 1}}, table_);
    homes_[tensor] = {{first_block}, 2};
  }
  void drop(std::uint32_t tensor) { policy_->freed({{tensor}, homes_.at(tensor)}); }
  Forecast run(std::uint64_t kernel, const std::vector<std::uint32_t>& tensors, bool wanted = true,
               bool sparse = false) {
    std::vector<BlockAccess> accesses;
    for (const std::uint32_t tensor : tensors) accesses.push_back({homes_.at(tensor), {tensor + 1}, false, sparse});
    return policy_->kernel_ready({{kStream}, kNoKernel, accesses, {kernel}}, wanted);
  }
  void fault(std::uint32_t block) { policy_->faulted({kStream, {{block}, 1}}, table_); }

 private:
  std::unique_ptr<OnlinePolicy> policy_;
  PageTable table_;
  std::map<std::uint32_t, BlockRange> homes_;
};

// First blocks of all that is expected, in order.
std::vector<std::uint32_t> blocks(const Forecast& forecast) {
  std::vector<std::uint32_t> result;
  for (const ExpectedUse& use : forecast.added)
    for (const BlockRange& range : use) result.push_back(range.first.value);
  return result;
}
using Blocks = std::vector<std::uint32_t>;

TEST(Deepum, WhatFollowedLastTimeIsExpectedAgain) {
  Script script;
  for (std::uint32_t tensor = 0; tensor < 4; ++tensor) script.make(tensor, tensor * 10);
  for (std::uint64_t kernel = 1; kernel <= 4; ++kernel)
    EXPECT_TRUE(blocks(script.run(kernel, {static_cast<std::uint32_t>(kernel - 1)})).empty());
  const Forecast again = script.run(1, {0});
  EXPECT_TRUE(again.anew);
  ASSERT_GE(again.added.size(), 3u);
  EXPECT_EQ(blocks(again)[0], 10u);
  EXPECT_EQ(blocks(again)[2], 30u);
}

TEST(Deepum, AsKernelsComeOnlyWhatIsNewIsSaid) {
  Script script;
  for (std::uint32_t tensor = 0; tensor < 50; ++tensor) script.make(tensor, tensor * 2);
  const auto iteration = [&](auto&& check) {
    for (std::uint32_t kernel = 0; kernel < 50; ++kernel) check(kernel, script.run(kernel + 1, {kernel}));
  };
  iteration([](std::uint32_t, const Forecast&) {});
  iteration([](std::uint32_t, const Forecast&) {});
  iteration([](std::uint32_t kernel, const Forecast& forecast) {
    EXPECT_FALSE(forecast.anew);
    EXPECT_EQ(blocks(forecast), Blocks{(kernel + 32) % 50 * 2});  // 32 kernels ahead
  });
}

TEST(Deepum, TheKernelsBeforeTellWhichOfSeveralComesNext) {
  Script script;
  for (std::uint32_t tensor = 0; tensor < 6; ++tensor) script.make(tensor, tensor * 10);
  for (int round = 0; round < 3; ++round) {  // 9 is run in two places
    script.run(1, {0});
    script.run(9, {5});
    script.run(2, {1});
    script.run(3, {2});
    script.run(9, {5});
    script.run(4, {3});
  }
  script.run(1, {0});
  Forecast next = script.run(9, {5}, false);  // Nothing is known ahead then.
  next = script.run(2, {1});
  EXPECT_EQ(blocks(next)[0], 20u);
  EXPECT_EQ(blocks(next)[2], 30u);  // after 9
}

TEST(Deepum, TensorsAreFoundWhereverTheyLie) {
  Script script;
  script.make(0, 0);
  script.make(1, 10);
  script.run(1, {0});
  script.run(2, {1});
  script.drop(1);
  script.make(1, 70);
  EXPECT_EQ(blocks(script.run(1, {0}))[0], 70u);
  script.run(2, {1});
  script.drop(1);
  const Forecast forecast = script.run(1, {0});
  for (const std::uint32_t block : blocks(forecast)) EXPECT_NE(block, 70u);  // It is dead.
}

TEST(Deepum, WhatIsUsedSparselyIsKnownByItsFaults) {
  Script script;
  script.make(0, 0);
  script.make(1, 10);
  script.run(1, {0});
  script.run(2, {1}, true, true);
  script.fault(11);
  const Forecast forecast = script.run(1, {0});
  ASSERT_FALSE(forecast.added.empty());
  EXPECT_EQ(forecast.added[0], (ExpectedUse{{{11}, 1}}));
}

TEST(Deepum, ItLooksNoFartherThanHalfTheDevice) {
  for (const Bytes block : {kBlockBytes, 64_KiB}) {
    Script script(16, block);
    for (std::uint32_t tensor = 0; tensor < 20; ++tensor) script.make(tensor, tensor * 2);
    for (int round = 0; round < 2; ++round)
      for (std::uint32_t kernel = 0; kernel < 20; ++kernel) script.run(kernel + 1, {kernel});
    EXPECT_EQ(script.run(99, {0}).added.size(), 0u);
    EXPECT_EQ(blocks(script.run(1, {0})), (Blocks{2, 4, 6, 8}));
  }
}

TEST(Deepum, ItSaysHowManyBytesTheNextKernelsMake) {
  Script script(1000, 64_KiB);
  script.make(0, 0);
  for (int round = 0; round < 2; ++round)
    for (std::uint64_t kernel = 1; kernel <= 5; ++kernel) {
      script.run(kernel, {0});
      if (kernel != 2) continue;
      script.make(1, 10);
      script.drop(1);
      script.make(2, 20);
      script.drop(2);
    }
  EXPECT_EQ(script.run(1, {0}).births, 128_KiB) << "the most at a time";
}

TEST(Deepum, KernelsWithoutANameStopIt) {
  Script script;
  script.make(0, 0);
  script.run(1, {0});
  script.run(1, {0});
  const Forecast forecast = script.run(0, {0});
  EXPECT_TRUE(forecast.anew);
  EXPECT_TRUE(forecast.added.empty());
}

}  // namespace
}  // namespace spillway
