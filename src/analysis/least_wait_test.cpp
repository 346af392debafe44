#include "analysis/least_wait.h"

#include <gtest/gtest.h>

#include <vector>

#include "trace/validate.h"

namespace spillway {
namespace {

// A kernel of 10 us, 2 of them before its start, reads, or makes, one tensor of 100 KiB, and may free it: then the next
// iteration has the one made after that.
struct UsedBy {
  std::uint32_t tensor;
  bool makes = false;
  Bytes until = 100_KiB;
  bool frees = false;
};
constexpr BytesPerSecond kRate{1'024'000'000};  // 100 KiB in 100 us
constexpr Nanos us(std::uint64_t count) { return {1000 * count}; }
Nanos wait_of(std::uint32_t persistent, std::uint32_t tensors, const std::vector<UsedBy>& uses, Bytes capacity,
              BytesPerSecond rate = kRate) {
  Trace trace{.name = "uses", .source = "test"};
  for (std::uint32_t tensor = 0; tensor < tensors; ++tensor)
    trace.tensors.push_back(
        {.name = "t", .bytes = 100_KiB, .kind = TensorKind::other, .persistent = tensor < persistent});
  for (const UsedBy& use : uses) {
    Kernel kernel{.name = "k", .phase = Phase::other, .duration = us(8), .gap = us(2)};
    (use.makes ? kernel.writes : kernel.reads).push_back({.tensor = {use.tensor}, .end = use.until});
    if (use.frees) {
      kernel.frees = {{use.tensor}};
      trace.tensors[use.tensor].carried_from = TensorId{use.tensor};
    }
    trace.kernels.push_back(kernel);
  }
  EXPECT_TRUE(validate(trace, "uses"));
  return least_wait(trace, analyse_lifetimes(trace), capacity, {}, rate);
}

TEST(LeastWait, IsNothingWhereAllFits) { EXPECT_EQ(wait_of(3, 3, {{0}, {1}, {2}}, 300_KiB), Nanos{}); }

// From the end of the first kernel to the start of the last one.
TEST(LeastWait, IsWhatComesLessTheTimeThatKernelsRunMeanwhile) {
  EXPECT_EQ(wait_of(3, 3, {{0}, {1}, {2}}, 200_KiB), us(100 - 2 - 8 - 2));
  EXPECT_EQ(wait_of(3, 3, {{0}, {1}, {2}}, 200_KiB, {2 * kRate.value}), us(50 - 12));
  EXPECT_EQ(wait_of(3, 3, {{0}, {1}, {2}}, 200_KiB, {20 * kRate.value}), Nanos{});
}

TEST(LeastWait, CountsWhatIsUsedTwiceOnce) { EXPECT_EQ(wait_of(2, 2, {{0}, {1}, {0}, {1}}, 200_KiB), Nanos{}); }

// What is made need not come, but takes its place.
TEST(LeastWait, CountsWhatIsMadeWhereItIsThereFirst) {
  EXPECT_EQ(wait_of(2, 3, {{0}, {1}, {2, true}}, 200_KiB), Nanos{});
  EXPECT_EQ(wait_of(2, 3, {{2, true}, {0}, {1}}, 200_KiB), us(100 - 12));
}

// The rest of a tensor that was made in parts may have no bytes.
TEST(LeastWait, CountsNothingOfWhatWasTouchedInParts) {
  EXPECT_EQ(wait_of(2, 3, {{2, true, 50_KiB}, {0}, {1}, {2}}, 200_KiB), us(50 - 12));
  EXPECT_EQ(wait_of(2, 3, {{2, true}, {0}, {1}, {2}}, 200_KiB), us(100 - 12));
}

// So may that of one which the iteration before has made in parts, after it had read its forerunner wholly.
TEST(LeastWait, CountsNothingOfWhatTheIterationBeforeTouchedInParts) {
  const UsedBy read_and_freed{.tensor = 2, .frees = true};
  EXPECT_EQ(wait_of(2, 3, {{0}, {1}, read_and_freed, {2, true, 50_KiB}}, 200_KiB), Nanos{});
  EXPECT_EQ(wait_of(2, 3, {{0}, {1}, read_and_freed, {2, true}}, 200_KiB), us(100 - 12));
}

// Each of four comes while nothing runs: before it the device is full of the one before.
TEST(LeastWait, AddsUpTheWaitsOfStretchesApart) {
  std::vector<UsedBy> uses{{0}, {1}, {2}};
  for (int idle = 0; idle < 40; ++idle) uses.push_back({2});
  for (const std::uint32_t tensor : {0u, 1u}) uses.push_back({tensor});
  EXPECT_EQ(wait_of(3, 3, uses, 100_KiB), us(4 * (100 - 2)));
}

// Each of many comes while nothing runs, whichever kernels have the largest working sets.
TEST(LeastWait, LooksFromEachKernelOn) {
  std::vector<UsedBy> uses;
  for (std::uint32_t kernel = 0; kernel < 1000; ++kernel) uses.push_back({kernel % 2});
  EXPECT_EQ(wait_of(2, 2, uses, 100_KiB), us(999 * (100 - 2)));
}

// Nobody knows when a kernel of which only parts fit has what of it.
TEST(LeastWait, SaysNothingOfKernelsThatDoNotFit) { EXPECT_EQ(wait_of(2, 2, {{0}, {1}}, 99_KiB), Nanos{}); }

}  // namespace
}  // namespace spillway
