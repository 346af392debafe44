#include "plan/block_trace.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>

#include "plan/placement.h"
#include "trace/random_trace.h"
#include "trace/validate.h"

namespace spillway {
namespace {

using Blocks = std::set<std::uint32_t>;

void add_blocks(Blocks& blocks, Bytes block_bytes, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t block = begin / block_bytes.value; block * block_bytes.value < end; ++block)
    blocks.insert(static_cast<std::uint32_t>(block));
}

// Everything that an iteration makes at a place of the region, what persists behind it.
Places all_places(const Trace& trace, const Placement& placement) {
  Places places = placement.places;
  std::uint64_t end = placement.bytes.value + 100;
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t)
    if (trace.tensors[t].persistent) {
      places[t] = end;
      end += trace.tensors[t].bytes.value;
    }
  return places;
}

struct Case {
  Trace trace = random_trace(*rc::gen::arbitrary<std::uint64_t>(), {.layers_most = 6, .bytes_most = 12 << 20});
  Lifetimes lifetimes = analyse_lifetimes(trace);
  Bytes block_bytes = *rc::gen::element(kBlockBytes, 4_MiB, kMostBlockBytes);
  Placement placement =
      place_births(trace, lifetimes, Bytes{*rc::gen::element<std::uint64_t>(0, 4096, 1 << 20)}, block_bytes);
  Places places = all_places(trace, placement);
  BlockTrace blocks = block_trace(trace, lifetimes, places, block_bytes);
};

TEST(BlockTraceProperty, IsAValidTraceOfTheSameKernels) {
  EXPECT_TRUE(rc::check([] {
    const Case random;
    const auto valid = validate(random.blocks.trace, "blocks");
    if (!valid) RC_FAIL(valid.error().message);
    RC_ASSERT(random.blocks.trace.kernels.size() == random.trace.kernels.size());
    RC_ASSERT(random.blocks.homes.size() == random.blocks.trace.tensors.size());
  }));
}

TEST(BlockTrace, LongRowsAreCut) {
  const auto homes_with = [](Bytes block_bytes, std::uint32_t blocks) {
    const Bytes bytes = block_bytes * blocks;
    Trace trace{.name = "one", .source = "test"};
    trace.tensors.push_back({.name = "w", .bytes = bytes, .kind = TensorKind::weight, .persistent = true});
    trace.kernels.push_back({.name = "k", .phase = Phase::forward, .duration = {1}, .reads = {{{0}, {}, bytes}}});
    const BlockTrace made = block_trace(trace, analyse_lifetimes(trace), {0}, block_bytes);
    EXPECT_EQ(made.trace.kernels.front().reads.size(), made.homes.size());
    for (std::size_t row = 0; row < made.homes.size(); ++row)
      EXPECT_EQ(made.trace.tensors[row].bytes, block_bytes * made.homes[row].count);
    return made.homes;
  };
  EXPECT_EQ(homes_with(kBlockBytes, 19), (std::vector<BlockRange>{{{0}, 8}, {{8}, 8}, {{16}, 3}}));
  EXPECT_EQ(homes_with(8_MiB, 3), (std::vector<BlockRange>{{{0}, 2}, {{2}, 1}}));
  EXPECT_EQ(homes_with(32_MiB, 2), (std::vector<BlockRange>{{{0}, 1}, {{1}, 1}})) << "a row has one at least";
}

TEST(BlockTraceProperty, KernelsUseTheBlocksThatTheirTensorsLieIn) {
  EXPECT_TRUE(rc::check([] {
    const Case random;
    for (std::size_t k = 0; k < random.trace.kernels.size(); ++k)
      for (const bool writes : {false, true}) {
        const auto accesses = [&](const Trace& trace) {
          return writes ? trace.kernels[k].writes : trace.kernels[k].reads;
        };
        Blocks expected, seen;
        for (const Access& access : accesses(random.trace))
          if (const auto place = random.places[access.tensor.value])
            add_blocks(expected, random.block_bytes, *place + access.begin.value, *place + access.end.value);
        for (const Access& access : accesses(random.blocks.trace)) {
          const BlockRange home = random.blocks.homes[access.tensor.value];
          for (BlockId block = home.first; block < home.end(); ++block.value)
            RC_ASSERT(seen.insert(block.value).second);
        }
        // Beyond that, only bytes that the next iteration reads although this one does not write them are born.
        RC_ASSERT(std::ranges::includes(seen, expected));
        if (!writes) RC_ASSERT(seen == expected);
      }
  }));
}

TEST(BlockTraceProperty, ReplacedTensorsAreUsedBesideTheRowsAsBefore) {
  EXPECT_TRUE(rc::check([] {
    const Case random;
    const Bytes at_least{*rc::gen::element<std::uint64_t>(0, 1 << 20)};
    const std::vector<TensorId> replaced = replaced_tensors(random.trace, at_least);
    for (const TensorId tensor : replaced) {
      RC_ASSERT(!random.places[tensor.value]);
      RC_ASSERT(random.trace[tensor].bytes >= at_least);
    }
    if (replaced.empty()) RC_DISCARD("none is replaced");
    const Trace all = with_tensors(random.blocks.trace, random.trace, replaced);
    const auto valid = validate(all, "all");
    if (!valid) RC_FAIL(valid.error().message);
    const auto rows = static_cast<std::uint32_t>(random.blocks.trace.tensors.size());
    RC_ASSERT(all.tensors.size() == rows + replaced.size());
    const Lifetimes lifetimes = analyse_lifetimes(all), row_lifetimes = analyse_lifetimes(random.blocks.trace);
    for (std::uint32_t row = 0; row < rows; ++row)
      RC_ASSERT(lifetimes.tensors[row].uses == row_lifetimes.tensors[row].uses);
    for (std::uint32_t at = 0; at < replaced.size(); ++at) {
      const Lifetime& before = random.lifetimes.tensors[replaced[at].value];
      const Lifetime& beside = lifetimes.tensors[rows + at];
      RC_ASSERT(beside.uses == before.uses);
      RC_ASSERT(beside.alive_at_start == before.alive_at_start);
      const auto& from = random.trace[replaced[at]].carried_from;
      RC_ASSERT(all.tensors[rows + at].carried_from.has_value() == from.has_value());
      if (from) RC_ASSERT(replaced[all.tensors[rows + at].carried_from->value - rows] == *from);
    }
  }));
}

// A block is alive from the first use of its bytes to the death of the last tensor in it.
TEST(BlockTraceProperty, BlocksLiveAsLongAsTheirTensors) {
  EXPECT_TRUE(rc::check([] {
    const Case random;
    const Lifetimes lifetimes = analyse_lifetimes(random.blocks.trace);
    std::map<std::uint32_t, int> tensors;  // alive in each block
    const auto count = [&](TensorId tensor, int change) {
      Blocks blocks;
      if (const auto place = random.places[tensor.value])
        add_blocks(blocks, random.block_bytes, *place, *place + random.trace[tensor].bytes.value);
      for (const std::uint32_t block : blocks) tensors[block] += change;
    };
    std::map<std::uint32_t, int> rows;
    const auto count_rows = [&](TensorId row, int change) {
      const BlockRange home = random.blocks.homes[row.value];
      for (BlockId block = home.first; block < home.end(); ++block.value) {
        rows[block.value] += change;
        RC_ASSERT(rows[block.value] == 0 || rows[block.value] == 1);  // one life at a time
      }
    };
    for (std::uint32_t t = 0; t < random.trace.tensors.size(); ++t)
      if (random.lifetimes.tensors[t].alive_at_start) count({t}, 1);
    for (std::uint32_t t = 0; t < lifetimes.tensors.size(); ++t)
      if (lifetimes.tensors[t].alive_at_start) count_rows({t}, 1);
    for (std::size_t k = 0; k < random.trace.kernels.size(); ++k) {
      for (const TensorId born : random.lifetimes.births[k]) count(born, 1);
      for (const TensorId born : lifetimes.births[k]) count_rows(born, 1);
      for (const auto& [block, alive] : rows) RC_ASSERT(alive == 0 || tensors[block] > 0);
      for (const TensorId dead : random.lifetimes.deaths[k]) count(dead, -1);
      for (const TensorId dead : lifetimes.deaths[k]) count_rows(dead, -1);
      for (const auto& [block, alive] : rows) RC_ASSERT(alive == 0 || tensors[block] > 0);
    }
  }));
}

TEST(PlacementProperty, DoesNotDependOnTimes) {
  EXPECT_TRUE(rc::check([] {
    const Case random;
    Trace slower = random.trace;
    for (Kernel& kernel : slower.kernels) kernel.duration.value = *rc::gen::inRange<std::uint64_t>(1, 1'000'000);
    const Placement other = place_births(slower, random.lifetimes, {}, random.block_bytes);
    RC_ASSERT(other.places == place_births(random.trace, random.lifetimes, {}, random.block_bytes).places);
  }));
}

TEST(PlacementProperty, TensorsThatAreAliveTogetherLieApart) {
  EXPECT_TRUE(rc::check([] {
    const Case random;
    std::map<std::uint64_t, std::uint64_t> taken;  // begin -> end
    const auto put = [&](TensorId tensor) {
      const auto place = random.placement.places[tensor.value];
      if (!place) return;
      const std::uint64_t end = *place + random.trace[tensor].bytes.value;
      RC_ASSERT(end <= random.placement.bytes.value);
      const auto next = taken.lower_bound(*place);
      const bool before_next = next == taken.end() || end <= next->first;
      const bool after_previous = next == taken.begin() || std::prev(next)->second <= *place;
      RC_ASSERT(before_next && after_previous);
      taken.emplace(*place, end);
    };
    for (std::uint32_t t = 0; t < random.trace.tensors.size(); ++t)
      if (random.lifetimes.tensors[t].alive_at_start) put({t});
    for (std::size_t k = 0; k < random.trace.kernels.size(); ++k) {
      for (const TensorId born : random.lifetimes.births[k]) put(born);
      for (const TensorId dead : random.lifetimes.deaths[k])
        if (const auto place = random.placement.places[dead.value]) taken.erase(*place);
    }
  }));
}

}  // namespace
}  // namespace spillway
