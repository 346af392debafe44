#include "policies/deepum_faults.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spillway {
namespace {

constexpr StreamId kTheStream{0};
constexpr std::uint32_t kBlocks = 8192;

// Kernels by number, blocks by letter. All blocks are in host memory.
class FaultScript {
 public:
  explicit FaultScript(const std::vector<std::pair<std::string_view, double>>& settings = {})
      : table_(PerTier<Bytes>{{}, kAll, {}}) {
    Parameters parameters(kDeepumFaultsParameters);
    for (const auto& [name, value] : settings) parameters.set(name, value);
    policy_ = make_deepum_faults({}, parameters);
    table_.add_blocks(kBlocks, kBlockBytes);
    for (BlockId block{0}; block.value < kBlocks - 1; ++block.value) table_.place(block, Tier::host);
  }

  Forecast ready(std::uint64_t kernel, bool wanted = true) {
    return policy_->kernel_ready({{kTheStream}, kNoKernel, {}, {kernel}}, wanted);
  }
  std::string fault(std::uint32_t block, StreamId stream = kTheStream) {
    return text(policy_->faulted({stream, {{block}, 1}}, table_));
  }
  Forecast run(std::uint64_t kernel, std::string_view faults) {
    Forecast forecast = ready(kernel);
    for (const char block : faults) fault(static_cast<std::uint32_t>(block));
    return forecast;
  }
  static std::string text(const std::vector<BlockRange>& ranges) {
    std::string result;
    for (const BlockRange& range : ranges)
      for (BlockId block = range.first; block < range.end(); ++block.value) result += static_cast<char>(block.value);
    return result;
  }

 private:
  static constexpr Bytes kAll = kBlockBytes * kBlocks;
  std::unique_ptr<OnlinePolicy> policy_;
  PageTable table_;
};

// What a forecast protects of each kernel, "ab c".
std::string added(const Forecast& forecast) {
  std::string result;
  for (const ExpectedUse& use : forecast.added) result += (result.empty() ? "" : " ") + FaultScript::text(use);
  return result;
}

// The tables of figure 7, made as in block_table_test.cpp, by kernels 1 and 2 (its 0 and 1) in turns. A fault on a
// brings b p e q. q is the end of kernel 1, so the chain goes on with kernel 2 from its start: k g n t i. One kernel
// ahead is all that is asked for.
TEST(DeepumFaults, ChainsAsFigure7) {
  FaultScript script({{"ahead", 1}});
  const std::string_view first[]{"cd", "ap", "bq", "abeq"}, second[]{"fu", "fe", "gi", "kn"};
  for (int round = 0; round < 4; ++round) {
    script.ready(0);
    script.run(1, first[round]);
    script.run(2, second[round]);
  }
  script.ready(0);
  script.ready(1);
  script.ready(2);
  for (const std::uint32_t block : {'k' + 0u, 'g' + 0u, 't' + 0u, 't' + 2048u, 't' + 4096u, 'u' + 0u})
    script.fault(block);
  script.ready(0);
  EXPECT_EQ(FaultScript::text(script.ready(1).prefetches), "") << "nothing has faulted yet";
  EXPECT_EQ(script.fault('a'), "bpeqkgnti");
}

// Kernels 1 to 6 fault on ab, c, d, e, f, g, and then comes one without a name.
FaultScript taught(const std::vector<std::pair<std::string_view, double>>& settings = {}) {
  FaultScript script(settings);
  script.run(1, "ab");
  for (std::uint64_t kernel = 2; kernel <= 6; ++kernel)
    script.run(kernel, std::string(1, static_cast<char>('a' + kernel)));
  script.ready(0);
  return script;
}

TEST(DeepumFaults, AChainPausesAndGoesOnWhenAKernelEnds) {
  FaultScript script = taught({{"ahead", 2}});
  script.ready(1);
  EXPECT_EQ(script.fault('a'), "bcd");
  EXPECT_EQ(FaultScript::text(script.ready(2).prefetches), "e");
  EXPECT_EQ(FaultScript::text(script.ready(3).prefetches), "f");
}

TEST(DeepumFaults, WhatHasBeenAskedForIsNotAskedForAgain) {
  FaultScript script = taught({{"ahead", 2}});
  script.ready(1);
  EXPECT_EQ(script.fault('a'), "bcd");
  EXPECT_EQ(script.fault('b'), "");
  EXPECT_EQ(script.fault('a'), "");
}

TEST(DeepumFaults, WithoutAFaultNothingIsBrought) {
  FaultScript script = taught({{"ahead", 2}});
  EXPECT_EQ(FaultScript::text(script.ready(1).prefetches), "");
  EXPECT_EQ(FaultScript::text(script.ready(2).prefetches), "");
  EXPECT_EQ(script.fault('x'), "de") << "nothing of kernel 2 is after x";
}

TEST(DeepumFaults, AWrongPredictionEndsTheChain) {
  FaultScript script = taught({{"ahead", 2}});
  script.ready(1);
  script.fault('a');
  const Forecast wrong = script.ready(5);
  EXPECT_TRUE(wrong.anew);
  EXPECT_EQ(FaultScript::text(wrong.prefetches), "");
  EXPECT_EQ(added(wrong), "") << "what comes after 5 is known only where 4 came before it";
  const Forecast right = script.ready(6);
  EXPECT_TRUE(right.anew);
}

// A kernel may come after several: the three before it tell. 9 comes after 1 and after 3.
TEST(DeepumFaults, TheThreeKernelsBeforeTellWhatComesNext) {
  FaultScript script({{"ahead", 1}});
  for (int round = 0; round < 3; ++round)
    for (const auto& [kernel, faults] : std::vector<std::pair<std::uint64_t, std::string_view>>{
             {1, "a"}, {9, "b"}, {2, "c"}, {3, "d"}, {9, "b"}, {4, "e"}})
      script.run(kernel, faults);
  script.ready(1);
  EXPECT_EQ(added(script.ready(9)), "c");
  script.ready(2);
  script.ready(3);
  EXPECT_EQ(added(script.ready(9)), "e");
}

TEST(DeepumFaults, WhatTheNextKernelsUseIsProtectedAndABlockKeptFree) {
  FaultScript script = taught({{"ahead", 3}});
  const Forecast first = script.ready(1);
  EXPECT_EQ(added(first), "c d e");
  EXPECT_EQ(first.births, kBlockBytes);
  const Forecast second = script.ready(2);
  EXPECT_FALSE(second.anew);
  EXPECT_EQ(added(second), "f");
}

TEST(DeepumFaults, EachStepCanBeSwitchedOff) {
  FaultScript prefetches = taught({{"ahead", 3}, {"pre-evict", 0}});
  const Forecast unprotected = prefetches.ready(1);
  EXPECT_EQ(unprotected.added.size(), 3u) << "their places are there";
  EXPECT_EQ(added(unprotected), "");
  EXPECT_EQ(unprotected.births, Bytes{});
  EXPECT_EQ(prefetches.fault('a'), "bcde");
  FaultScript pre_evicts = taught({{"ahead", 3}, {"prefetch", 0}});
  EXPECT_EQ(added(pre_evicts.ready(1)), "c d e");
  EXPECT_EQ(pre_evicts.fault('a'), "");
}

TEST(DeepumFaults, AFirstTouchIsNoFault) {
  FaultScript script;
  script.run(1, "a");
  script.fault(kBlocks - 1);
  script.fault('b');
  script.ready(0);
  script.ready(1);
  EXPECT_EQ(script.fault('a'), "b");
}

TEST(DeepumFaults, FaultsOfOtherThreadsAreThoseOfTheKernelThatRuns) {
  FaultScript script;
  script.run(1, "a");
  script.fault('b', {7});
  script.ready(0);
  script.ready(1);
  EXPECT_EQ(script.fault('a'), "b");
}

TEST(DeepumFaults, WhereSomebodyElseDecidesItOnlyLearns) {
  FaultScript script = taught({{"ahead", 2}});
  EXPECT_TRUE(script.ready(1, false).added.empty());
  EXPECT_EQ(script.fault('a'), "");
  EXPECT_EQ(added(script.ready(2)), "d e");
}

TEST(DeepumFaults, KernelsWithoutANameStopIt) {
  FaultScript script = taught({{"ahead", 2}});
  script.run(1, "a");
  const Forecast forecast = script.ready(0);
  EXPECT_TRUE(forecast.anew);
  EXPECT_TRUE(forecast.added.empty());
  EXPECT_EQ(script.fault('a'), "");
}

}  // namespace
}  // namespace spillway
