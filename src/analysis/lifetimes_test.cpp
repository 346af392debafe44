#include "analysis/lifetimes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/timeline.h"
#include "trace/random_trace.h"
#include "trace/validate.h"

namespace spillway {
namespace {

Access all_of(const Trace& trace, std::uint32_t id) { return {.tensor = {id}, .end = trace.tensors[id].bytes}; }

// 0 weight, 1 activation, 2 gradient; five kernels, the middle one of a third party.
Trace small_trace() {
  Trace t{.name = "small", .source = "test"};
  t.tensors = {Tensor{"weight", {100}, TensorKind::weight, true, {}},
               Tensor{"activation", {50}, TensorKind::activation, false, {}},
               Tensor{"gradient", {100}, TensorKind::gradient, false, {}},
               Tensor{"scratch", {7}, TensorKind::workspace, false, {}}};
  t.kernels = {Kernel{"forward", Phase::forward, {10}, {1}, {all_of(t, 0)}, {all_of(t, 1)}, {}, {}},
               Kernel{"loss", Phase::forward, {20}, {2}, {}, {all_of(t, 3)}, {}, {}},
               Kernel{"backward", Phase::backward, {30}, {3}, {all_of(t, 1)}, {all_of(t, 2)}, {}, {}},
               Kernel{"norm", Phase::backward, {40}, {4}, {}, {all_of(t, 3)}, {}, {}},
               Kernel{"step", Phase::optimizer, {50}, {5}, {all_of(t, 2), all_of(t, 0)}, {all_of(t, 0)}, {{2}}, {}}};
  EXPECT_TRUE(validate(t, "small"));
  return t;
}

TEST(Lifetimes, ATensorLivesFromItsFirstUseToItsLast) {
  const Lifetimes l = analyse_lifetimes(small_trace());
  EXPECT_EQ(l.tensors[1].birth, KernelId{0});
  EXPECT_EQ(l.tensors[1].death, KernelId{2});
  EXPECT_EQ(l.tensors[3].uses, (std::vector<KernelId>{{1}, {3}}));
  EXPECT_EQ(l.births[0], (std::vector<TensorId>{{1}}));
  EXPECT_EQ(l.births[2], (std::vector<TensorId>{{2}}));
  EXPECT_EQ(l.deaths[2], (std::vector<TensorId>{{1}}));
  EXPECT_EQ(l.deaths[3], (std::vector<TensorId>{{3}}));
  EXPECT_EQ(l.live, (std::vector<Bytes>{{150}, {157}, {257}, {207}, {200}}));
  EXPECT_EQ(l.working_set, (std::vector<Bytes>{{150}, {7}, {150}, {7}, {200}}));
}

TEST(Lifetimes, AFreeThatComesLaterKeepsTheBytesAlive) {
  Trace t = small_trace();
  t.kernels[3].frees.push_back({1});
  const Lifetimes l = analyse_lifetimes(t);
  EXPECT_EQ(l.tensors[1].death, KernelId{3});
  EXPECT_EQ(l.live[3], Bytes{257});
}

TEST(Lifetimes, WhatIsNotFreedAtItsLastUseHasALastPeriod) {
  Trace t = small_trace();
  t.kernels[4].frees.push_back({1});  // last used by kernel 2
  const Lifetimes l = analyse_lifetimes(t);
  const auto last = std::ranges::find(l.periods, true, &InactivePeriod::last);
  ASSERT_NE(last, l.periods.end());
  EXPECT_EQ(last->tensor, TensorId{1});
  EXPECT_EQ(last->after, KernelId{2});
  EXPECT_EQ(last->before, KernelId{0}) << "of the next iteration";
  EXPECT_TRUE(last->wraps);
  EXPECT_EQ(std::ranges::count(l.periods, true, &InactivePeriod::last), 1);
}

TEST(Lifetimes, APeriodLastsFromTheEndOfAUseToTheStartOfTheNext) {
  const Trace t = small_trace();
  const Lifetimes l = analyse_lifetimes(t);
  const Timeline timeline = ideal_timeline(t);
  EXPECT_EQ(timeline.iteration, Nanos{165});
  ASSERT_EQ(l.periods.size(), 4u);
  // The weight rests from the forward pass to the optimizer; from there to the next forward pass no kernel passes.
  EXPECT_EQ(l.periods[0].tensor, TensorId{0});
  EXPECT_EQ(l.periods[0].after, KernelId{0});
  EXPECT_EQ(l.periods[0].before, KernelId{4});
  EXPECT_EQ(time_of(l.periods[0], timeline), Nanos{2 + 20 + 3 + 30 + 4 + 40 + 5});
  EXPECT_EQ(l.periods[1].tensor, TensorId{1});
  EXPECT_EQ(time_of(l.periods[1], timeline), Nanos{2 + 20 + 3});
  EXPECT_EQ(l.periods[2].tensor, TensorId{2});
  EXPECT_EQ(l.periods[3].tensor, TensorId{3});
}

TEST(Lifetimes, APersistentTensorRestsAcrossTheIterationsEnd) {
  Trace t = small_trace();
  t.tensors[3].persistent = true;
  const Lifetimes l = analyse_lifetimes(t);
  const auto period = std::ranges::find_if(l.periods, [](const InactivePeriod& p) { return p.wraps; });
  ASSERT_NE(period, l.periods.end());
  EXPECT_EQ(period->tensor, TensorId{3});
  EXPECT_EQ(period->after, KernelId{3});
  EXPECT_EQ(period->before, KernelId{1});
  EXPECT_EQ(time_of(*period, ideal_timeline(t)), Nanos{5 + 50 + 1 + 10 + 2});
}

TEST(Lifetimes, OneUseInAnIterationLeavesTheRestOfItInactive) {
  Trace t = small_trace();
  t.kernels[4].reads.pop_back();
  t.kernels[4].writes.clear();
  const Lifetimes l = analyse_lifetimes(t);
  ASSERT_FALSE(l.periods.empty());
  EXPECT_TRUE(l.periods[0].wraps);
  EXPECT_EQ(l.periods[0].after, l.periods[0].before);
  EXPECT_EQ(time_of(l.periods[0], ideal_timeline(t)), Nanos{165 - 10});
}

TEST(Lifetimes, ATensorCarriedFromItselfDiesBeforeItIsBorn) {
  Trace t = small_trace();
  t.tensors[2].carried_from = TensorId{2};
  t.kernels[4].frees.clear();
  t.kernels[1].reads = {all_of(t, 2)};
  t.kernels[1].frees = {{2}};
  ASSERT_TRUE(validate(t, "x"));
  const Lifetimes l = analyse_lifetimes(t);
  const Lifetime& gradient = l.tensors[2];
  EXPECT_TRUE(gradient.alive_at_start && gradient.alive_at_end);
  EXPECT_EQ(gradient.heir, TensorId{2});
  EXPECT_EQ(gradient.death, KernelId{1});
  EXPECT_EQ(gradient.birth, KernelId{2});
  EXPECT_EQ(l.live, (std::vector<Bytes>{{250}, {257}, {257}, {207}, {200}}));
  std::vector<InactivePeriod> periods;
  std::ranges::copy_if(l.periods, std::back_inserter(periods), [](const auto& p) { return p.tensor == TensorId{2}; });
  ASSERT_EQ(periods.size(), 2u) << "from birth to the optimizer, and from there into the next iteration";
  EXPECT_FALSE(periods[0].wraps);
  EXPECT_TRUE(periods[1].wraps);
  EXPECT_EQ(periods[1].after, KernelId{4});
  EXPECT_EQ(periods[1].before, KernelId{1});
}

TEST(Lifetimes, WhatIsFreedUnusedInTheNextIterationHasItsLastPeriodThere) {
  Trace t = small_trace();
  t.tensors[2].carried_from = TensorId{2};
  t.kernels[4].frees.clear();
  t.kernels[0].frees = {{2}};
  ASSERT_TRUE(validate(t, "x"));
  const Lifetimes l = analyse_lifetimes(t);
  const auto last = std::ranges::find(l.periods, true, &InactivePeriod::wraps);
  ASSERT_NE(last, l.periods.end());
  EXPECT_TRUE(last->last);
  EXPECT_EQ(last->after, KernelId{4});
  EXPECT_EQ(last->before, KernelId{1});
  EXPECT_EQ(std::ranges::count(l.periods, true, &InactivePeriod::wraps), 1);
}

TEST(Lifetimes, ACarriedTensorsPeriodEndsAtItsHeirsFirstUse) {
  Trace t = small_trace();
  t.tensors.push_back({"old gradient", {100}, TensorKind::gradient, false, TensorId{2}});
  t.kernels[4].frees.clear();
  t.kernels[1].reads = {all_of(t, 4)};
  ASSERT_TRUE(validate(t, "x"));
  const Lifetimes l = analyse_lifetimes(t);
  EXPECT_EQ(l.tensors[2].heir, TensorId{4});
  EXPECT_TRUE(l.tensors[4].alive_at_start);
  EXPECT_FALSE(l.tensors[4].alive_at_end);
  EXPECT_EQ(l.tensors[4].death, KernelId{1});
  const auto period = std::ranges::find_if(l.periods, [](const InactivePeriod& p) { return p.wraps; });
  ASSERT_NE(period, l.periods.end());
  EXPECT_EQ(period->tensor, TensorId{2});
  EXPECT_EQ(period->after, KernelId{4});
  EXPECT_EQ(period->before, KernelId{1});
}

// ---- Against a model that runs two iterations kernel by kernel and knows nothing of lifetimes ----------------------

std::set<TensorId> used_by(const Kernel& kernel) {
  std::set<TensorId> used;
  for (const auto* accesses : {&kernel.reads, &kernel.writes})
    for (const Access& access : *accesses) used.insert(access.tensor);
  return used;
}

// The bytes alive at each kernel of the second iteration, by following allocations and frees.
std::vector<Bytes> live_by_running(const Trace& trace) {
  std::map<TensorId, std::size_t> last_use;
  std::set<TensorId> freed_somewhere, sources;
  for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
    for (const TensorId id : used_by(trace.kernels[k])) last_use[id] = k;
    freed_somewhere.insert(trace.kernels[k].frees.begin(), trace.kernels[k].frees.end());
  }
  for (const Tensor& tensor : trace.tensors)
    if (tensor.carried_from) sources.insert(*tensor.carried_from);
  std::set<TensorId> alive;
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t)
    if (trace.tensors[t].persistent || trace.tensors[t].carried_from) alive.insert({t});
  std::vector<Bytes> live;
  for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
    for (const TensorId id : used_by(trace.kernels[k])) alive.insert(id);
    Bytes bytes;
    for (const TensorId id : alive) bytes += trace[id].bytes;
    live.push_back(bytes);
    for (const TensorId id : trace.kernels[k].frees) alive.erase(id);
    for (const TensorId id : used_by(trace.kernels[k]))
      if (last_use[id] == k && !trace[id].persistent && !sources.contains(id) && !freed_somewhere.contains(id))
        alive.erase(id);
  }
  return live;
}

// Every gap of at least one kernel between two uses of the same bytes that begin in the first of two iterations, or
// between the last one and the end of a tensor of that name.
std::vector<std::tuple<TensorId, KernelId, KernelId, bool>> periods_by_running(const Trace& trace) {
  const std::size_t n = trace.kernels.size();
  struct Bytes_ {
    TensorId tensor;
    std::size_t used_at;
  };
  std::map<TensorId, Bytes_> holding;  // by the tensor that has the bytes now: who used them last, and when
  std::vector<std::tuple<TensorId, KernelId, KernelId, bool>> periods;
  const auto kernel_id = [&](std::size_t step) { return KernelId{static_cast<std::uint32_t>(step % n)}; };
  for (std::size_t step = 0; step < 2 * n; ++step) {
    if (step == n) {  // what nobody carries or keeps is gone
      std::map<TensorId, Bytes_> next;
      for (std::uint32_t t = 0; t < trace.tensors.size(); ++t) {
        const Tensor& tensor = trace.tensors[t];
        const TensorId from = tensor.persistent ? TensorId{t} : tensor.carried_from.value_or(TensorId{~0u});
        if (const auto held = holding.find(from); held != holding.end()) next.emplace(TensorId{t}, held->second);
      }
      holding = std::move(next);
    }
    const Kernel& kernel = trace.kernels[step % n];
    for (const TensorId id : used_by(kernel)) {
      if (const auto held = holding.find(id); held != holding.end() && held->second.used_at < n) {
        if (step - held->second.used_at > 1)
          periods.emplace_back(held->second.tensor, kernel_id(held->second.used_at), kernel_id(step), false);
      }
      holding[id] = {.tensor = id, .used_at = step};
    }
    for (const TensorId id : kernel.frees) {
      if (const auto held = holding.find(id);
          held != holding.end() && held->second.used_at < n && held->second.tensor == id && held->second.used_at < step)
        periods.emplace_back(id, kernel_id(held->second.used_at), kernel_id(step + 1), true);
      holding.erase(id);
    }
  }
  std::ranges::sort(periods);
  return periods;
}

RC_GTEST_PROP(Lifetimes, LiveBytesAreThoseOfARun, (std::uint32_t seed)) {
  const Trace trace = random_trace(seed);
  RC_ASSERT(analyse_lifetimes(trace).live == live_by_running(trace));
}

RC_GTEST_PROP(Lifetimes, PeriodsAreTheGapsOfARun, (std::uint32_t seed)) {
  const Trace trace = random_trace(seed);
  const Lifetimes lifetimes = analyse_lifetimes(trace);
  std::vector<std::tuple<TensorId, KernelId, KernelId, bool>> periods;
  for (const InactivePeriod& p : lifetimes.periods) {
    periods.emplace_back(p.tensor, p.after, p.before, p.last);
    RC_ASSERT(p.wraps == (p.before <= p.after));
  }
  std::ranges::sort(periods);
  RC_ASSERT(periods == periods_by_running(trace));
}

}  // namespace
}  // namespace spillway
