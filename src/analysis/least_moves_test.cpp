#include "analysis/least_moves.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "trace/random_trace.h"
#include "trace/validate.h"

namespace spillway {
namespace {

// Kernels read and write whole tensors of so many bytes.
struct Step {
  std::vector<std::uint32_t> reads, writes;
};
Trace trace_of(const std::vector<std::uint64_t>& bytes, std::uint32_t persistent, const std::vector<Step>& steps) {
  Trace trace{.name = "steps", .source = "test"};
  for (std::uint32_t tensor = 0; tensor < bytes.size(); ++tensor)
    trace.tensors.push_back(
        {.name = "t", .bytes = {bytes[tensor]}, .kind = TensorKind::other, .persistent = tensor < persistent});
  for (const Step& step : steps) {
    Kernel kernel{.name = "k", .phase = Phase::other, .duration = {1}};
    for (const std::uint32_t tensor : step.reads) kernel.reads.push_back({.tensor = {tensor}, .end = {bytes[tensor]}});
    for (const std::uint32_t tensor : step.writes)
      kernel.writes.push_back({.tensor = {tensor}, .end = {bytes[tensor]}});
    trace.kernels.push_back(kernel);
  }
  EXPECT_TRUE(validate(trace, "steps"));
  return trace;
}
LeastMoves least(const Trace& trace, Bytes capacity) { return least_moves(trace, analyse_lifetimes(trace), capacity); }

TEST(LeastMoves, WhatFitsMovesNothing) {
  const Trace trace = trace_of({4, 4}, 2, {{{0}, {0}}, {{1}, {1}}});
  EXPECT_EQ(least(trace, {8}).in, Bytes{});
  EXPECT_EQ(least(trace, {8}).out, Bytes{});
}

// Each of seven weights is used once, and one of them fits no more. A plan may keep a part of each away.
TEST(LeastMoves, AreNoMoreThanAPlanInPartsTakes) {
  const Trace trace = trace_of(std::vector<std::uint64_t>(7, 840), 7,
                               {{{0}, {0}}, {{1}, {1}}, {{2}, {2}}, {{3}, {3}}, {{4}, {4}}, {{5}, {5}}, {{6}, {6}}});
  EXPECT_LE(least(trace, {6 * 840}).in, Bytes{980});
  EXPECT_GT(least(trace, {6 * 840}).in, Bytes{900});
  EXPECT_EQ(least(trace, {6 * 840}).out, least(trace, {6 * 840}).in);
}

TEST(LeastMoves, WhatNeverChangesLeavesForNothing) {
  const Trace trace = trace_of({6, 6, 6}, 3, {{{0}, {}}, {{1}, {}}, {{2}, {}}});
  EXPECT_GE(least(trace, {12}).in, Bytes{8});
  EXPECT_EQ(least(trace, {12}).out, Bytes{});
}

TEST(LeastMoves, WhatIsReadTwiceAfterAWriteLeavesOnce) {
  const Trace trace = trace_of({5, 8, 8}, 0, {{{}, {0}}, {{}, {1}}, {{0}, {}}, {{}, {2}}, {{0}, {}}});
  EXPECT_EQ(least(trace, {8}).in, Bytes{10});
  EXPECT_EQ(least(trace, {8}).out, Bytes{5});
}

// Demand paging with pages of one byte, of which the one leaves that is used furthest in the future.
Bytes paged(const Trace& trace, const Lifetimes& lifetimes, std::uint64_t capacity) {
  const auto kernels = static_cast<std::uint32_t>(trace.kernels.size());
  const auto next_use = [&](std::uint32_t tensor, std::uint32_t after) -> std::uint32_t {
    const auto& uses = lifetimes.tensors[tensor].uses;
    const auto next = std::ranges::upper_bound(uses, KernelId{after});
    if (next != uses.end()) return next->value;
    return trace.tensors[tensor].persistent ? uses.front().value + kernels : UINT32_MAX;
  };
  std::map<std::uint32_t, std::uint64_t> here;  // bytes of each tensor
  for (std::uint32_t tensor = 0; tensor < trace.tensors.size(); ++tensor)
    if (trace.tensors[tensor].persistent && !lifetimes.tensors[tensor].uses.empty())
      here[tensor] = trace.tensors[tensor].bytes.value;
  std::uint64_t fetched = 0, least = 0;
  for (std::uint64_t iteration = 1; iteration <= 16; ++iteration) {
    for (std::uint32_t kernel = 0; kernel < kernels; ++kernel) {
      std::set<std::uint32_t> used;
      for (const auto* accesses : {&trace.kernels[kernel].reads, &trace.kernels[kernel].writes})
        for (const Access& access : *accesses) used.insert(access.tensor.value);
      for (const std::uint32_t tensor : used) {
        const std::uint64_t bytes = trace.tensors[tensor].bytes.value;
        const bool is_born = !trace.tensors[tensor].persistent && lifetimes.tensors[tensor].birth == KernelId{kernel};
        if (!is_born) fetched += bytes - here[tensor];
        here[tensor] = bytes;
      }
      const auto in_use = [&] {
        return std::accumulate(here.begin(), here.end(), std::uint64_t{0},
                               [](std::uint64_t sum, const auto& entry) { return sum + entry.second; });
      };
      while (in_use() > capacity) {
        std::pair<std::uint32_t, std::uint32_t> furthest{0, 0};
        for (const auto& [tensor, bytes] : here)
          if (bytes > 0 && !used.contains(tensor)) furthest = std::max(furthest, {next_use(tensor, kernel), tensor});
        if (furthest.first == 0) break;  // The working set alone is too large.
        --here[furthest.second];
      }
      std::erase_if(here, [&](const auto& entry) { return next_use(entry.first, kernel) == UINT32_MAX; });
    }
    least = std::max(least, fetched / iteration);
  }
  return {least};
}

RC_GTEST_PROP(LeastMoves, AreThoseOfPagingThatKnowsTheFuture, (std::uint32_t seed)) {
  const Trace trace =
      random_trace(seed, {.layers_most = 6, .bytes_most = 12, .carries = false, .partial_accesses = false});
  const Lifetimes lifetimes = analyse_lifetimes(trace);
  const std::uint64_t most = std::ranges::max(lifetimes.working_set).value;
  const std::uint64_t peak = std::ranges::max(lifetimes.live).value;
  const std::uint64_t capacity = *rc::gen::inRange(most, peak + 2);
  RC_ASSERT(least_moves(trace, lifetimes, {capacity}).in == paged(trace, lifetimes, capacity));
}

}  // namespace
}  // namespace spillway
