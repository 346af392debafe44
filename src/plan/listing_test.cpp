#include "plan/listing.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

TEST(Listing, ShowsKernelsWithAllocationsPrefetchesFreesAndEvictionsBetweenThem) {
  Trace trace{.name = "three", .source = "test"};
  trace.tensors = {{.name = "w", .bytes = Bytes{40'960}, .persistent = true},
                   {.name = "a", .bytes = Bytes{8'192}, .persistent = false}};
  const auto kernel = [&](const char* name, std::vector<Access> reads, std::vector<Access> writes) {
    trace.kernels.push_back({.name = name,
                             .phase = Phase::forward,
                             .duration = Nanos{1'500'000},
                             .reads = std::move(reads),
                             .writes = std::move(writes)});
  };
  kernel("conv", {{{0}, {}, {4'096}}, {{0}, {4'096}, {40'960}}}, {{{1}, {}, {8'192}}});
  kernel("relu", {{{1}, {}, {8'192}}}, {{{1}, {}, {8'192}}});
  kernel("step", {}, {{{0}, {}, {40'960}}});
  Plan plan;
  plan.evictions = {{{0}, {0}, Tier::host}};
  plan.prefetches = {{{0}, {1}}};
  const std::vector<std::string> expected{
      "alloc(tensor1, 8192)",        "// kernel 0, forward, 1.5 ms", "conv(tensor0 -> tensor1)",
      "evict(tensor0, 40960, host)", "prefetch(tensor0, 40960)",     "// kernel 1, forward, 1.5 ms",
      "relu(tensor1 -> tensor1)",    "free(tensor1, 8192)",          "// kernel 2, forward, 1.5 ms",
      "step( -> tensor0)",
  };
  EXPECT_EQ(listing(plan, trace, analyse_lifetimes(trace)), expected);
}

TEST(Listing, ShowsWhatIsDroppedAndMadeAgain) {
  Trace trace{.name = "three", .source = "test"};
  trace.tensors = {{.name = "a", .bytes = Bytes{8'192}}};
  const Access all{.tensor = {0}, .end = Bytes{8'192}};
  const auto kernel = [&](const char* name, std::vector<Access> reads, std::vector<Access> writes) {
    trace.kernels.push_back(
        {.name = name, .duration = Nanos{1'000}, .reads = std::move(reads), .writes = std::move(writes)});
  };
  kernel("conv", {}, {all});
  kernel("loss", {}, {});
  kernel("back", {all}, {});
  Plan plan;
  plan.recomputations = {{{0}, {0}, {2}, {{0}}}};
  const std::vector<std::string> expected{
      "alloc(tensor0, 8192)", "// kernel 0, other, 1 us", "conv( -> tensor0)",
      "drop(tensor0, 8192)",  "// kernel 1, other, 1 us", "loss( -> )",
      "// tensor0 again",     "conv(), as kernel 0",      "// kernel 2, other, 1 us",
      "back(tensor0 -> )",    "free(tensor0, 8192)",
  };
  EXPECT_EQ(listing(plan, trace, analyse_lifetimes(trace)), expected);
}

}  // namespace
}  // namespace spillway
