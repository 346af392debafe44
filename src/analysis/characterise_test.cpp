#include "analysis/characterise.h"

#include <gtest/gtest.h>

#include "trace/random_trace.h"
#include "trace/validate.h"

namespace spillway {
namespace {

// A weight of 100 MB and ten kernels of 50 ms; the weight is used by the first only, a scratch of 1 KB by all.
Trace trace_with_one_rest() {
  Trace t{.name = "rest", .source = "test"};
  t.tensors = {Tensor{"weight", {99'999'000}, TensorKind::weight, true, {}},
               Tensor{"scratch", {1'000}, TensorKind::workspace, false, {}}};
  for (int k = 0; k < 10; ++k)
    t.kernels.push_back({"k", Phase::other, {50'000'000}, {}, {}, {{{1}, {}, {1'000}}}, {}, {}});
  t.kernels[0].reads.push_back({{0}, {}, {99'999'000}});
  EXPECT_TRUE(validate(t, "x"));
  return t;
}

TEST(Characterise, ActiveBytesAreSharesOfLiveOnes) {
  const Trace trace = trace_with_one_rest();
  const Characterisation c = characterise(trace, analyse_lifetimes(trace));
  EXPECT_DOUBLE_EQ(c.active_of_live_most, 1.0);
  EXPECT_DOUBLE_EQ(c.active_of_live_median, 1e-5);
  EXPECT_NEAR(c.active_of_live_mean, 0.1, 1e-4);
  EXPECT_DOUBLE_EQ(c.active_of_peak_most, 1.0);
}

TEST(Characterise, PeriodsAreMeasuredAgainstTheSsd) {
  const Trace trace = trace_with_one_rest();
  const Characterisation c = characterise(trace, analyse_lifetimes(trace));
  EXPECT_EQ(c.inactive_length.least, Nanos{450'000'000});
  EXPECT_EQ(c.inactive_length.most, Nanos{450'000'000});
  EXPECT_EQ(c.inactive_bytes.median, Bytes{99'999'000});
  EXPECT_EQ(c.longer_than_20us, 1);
  EXPECT_EQ(c.longer_than_100ms, 1);
  EXPECT_EQ(c.longer_than_10s, 0);
  EXPECT_EQ(c.hide_ssd_round_trip, 1) << "100 MB out at 3.0 and in at 3.2 GB/s take 65 ms";
}

TEST(Characterise, WithoutPeriodsEverythingIsZero) {
  Trace trace = trace_with_one_rest();
  trace.kernels.resize(1);
  const Characterisation c = characterise(trace, analyse_lifetimes(trace));
  EXPECT_EQ(c.inactive_length.most, Nanos{});
  EXPECT_EQ(c.hide_ssd_round_trip, 0);
}

TEST(HeaviestMoments, AreSortedApartAndNoMoreThanAskedFor) {
  Lifetimes lifetimes;
  for (std::uint64_t k = 0; k < 100; ++k) {
    lifetimes.live.push_back({k == 50 ? 1000 : k == 51 ? 999 : k});
    lifetimes.working_set.push_back({1});
  }
  const auto moments = heaviest_moments(lifetimes, 3);
  ASSERT_EQ(moments.size(), 3u);
  EXPECT_EQ(moments[0].kernel, KernelId{50});
  EXPECT_EQ(moments[0].live, Bytes{1000});
  EXPECT_EQ(moments[1].kernel, KernelId{99}) << "51 is too near to 50";
  EXPECT_EQ(moments[2].kernel, KernelId{97});
  EXPECT_EQ(heaviest_moments(lifetimes, 1000).size(), 50u);
}

}  // namespace
}  // namespace spillway
