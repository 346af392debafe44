#include "analysis/least_wait.h"

#include <gtest/gtest.h>

#include <vector>

#include "trace/validate.h"

namespace spillway {
namespace {

// A kernel of 10 ns reads, or makes, one tensor of 100 bytes.
struct UsedBy {
  std::uint32_t tensor;
  bool makes = false;
};
Nanos wait_of(std::uint32_t persistent, std::uint32_t tensors, const std::vector<UsedBy>& uses, Bytes capacity,
              BytesPerSecond rate = {1'000'000'000}) {
  Trace trace{.name = "uses", .source = "test", .tensors = {}, .kernels = {}};
  for (std::uint32_t tensor = 0; tensor < tensors; ++tensor)
    trace.tensors.push_back({.name = "t",
                             .bytes = {100},
                             .kind = TensorKind::other,
                             .persistent = tensor < persistent,
                             .carried_from = {}});
  for (const UsedBy& use : uses) {
    Kernel kernel{.name = "k",
                  .phase = Phase::other,
                  .duration = {8},
                  .gap = {2},
                  .reads = {},
                  .writes = {},
                  .frees = {},
                  .flops = {}};
    (use.makes ? kernel.writes : kernel.reads).push_back({.tensor = {use.tensor}, .begin = {}, .end = {100}});
    trace.kernels.push_back(kernel);
  }
  EXPECT_TRUE(validate(trace, "uses"));
  return least_wait(trace, analyse_lifetimes(trace), capacity, rate);
}

TEST(LeastWait, IsNothingWhereAllFits) { EXPECT_EQ(wait_of(3, 3, {{0}, {1}, {2}}, {300}), Nanos{}); }

TEST(LeastWait, IsWhatComesLessTheTimeThatKernelsRunMeanwhile) {
  EXPECT_EQ(wait_of(3, 3, {{0}, {1}, {2}}, {200}), Nanos{100 - 30});
  EXPECT_EQ(wait_of(3, 3, {{0}, {1}, {2}}, {200}, {2'000'000'000}), Nanos{50 - 30});
  EXPECT_EQ(wait_of(3, 3, {{0}, {1}, {2}}, {200}, {20'000'000'000}), Nanos{});
}

TEST(LeastWait, CountsWhatIsUsedTwiceOnceAndWhatIsMadeNever) {
  EXPECT_EQ(wait_of(2, 3, {{0}, {1}, {0}, {1}, {2, true}}, {200}), Nanos{});
  EXPECT_EQ(wait_of(2, 3, {{0}, {1}, {2, true}}, {100}), Nanos{100 - 20});
}

// Between two stretches that each use much in little time one tensor is used over and over.
TEST(LeastWait, AddsUpTheWaitsOfStretchesApart) {
  std::vector<UsedBy> uses{{0}, {1}, {2}};
  for (int idle = 0; idle < 20; ++idle) uses.push_back({2});
  for (const std::uint32_t tensor : {0u, 1u}) uses.push_back({tensor});
  EXPECT_EQ(wait_of(3, 3, uses, {100}), Nanos{2 * (200 - 30)});
}

}  // namespace
}  // namespace spillway
