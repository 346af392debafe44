// Plans that no policy would make: where the validator accepts one, it runs to its end within all capacities, and a
// program that recomputes reads what the one that does not reads.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/lifetimes.h"
#include "machines/sim/simulate.h"
#include "plan/machine_file.h"
#include "plan/recomputation.h"
#include "plan/validate.h"
#include "policies/policies.h"
#include "trace/random_trace.h"

namespace spillway {
namespace {

class RandomPlan {
 public:
  RandomPlan(std::uint64_t seed, const Trace& trace, const Lifetimes& lifetimes, const MachineModel& machine)
      : random_(seed), trace_(trace), lifetimes_(lifetimes), machine_(machine) {}

  // Nearly all of its commands are such that the validator accepts them beside those before.
  Plan make() {
    for (const InactivePeriod& period : lifetimes_.periods) {
      Plan more = plan_;
      if (chance(2)) {
        more.recomputations.push_back(recomputation(period));
        std::ranges::stable_sort(more.recomputations, {}, &Recomputation::drop_after);
      } else if (!chance(4)) {
        more.evictions.push_back(eviction(period));
        if (!chance(4)) more.prefetches.push_back(prefetch(period));
        std::ranges::stable_sort(more.evictions, {}, &Eviction::after);
        std::ranges::stable_sort(more.prefetches, {}, &Prefetch::at);
      }
      if (chance(200) || validate_plan(more, trace_, "", lifetimes_, machine_)) plan_ = std::move(more);
    }
    return std::move(plan_);
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool chance(std::uint64_t one_in) { return below(one_in) == 0; }
  std::uint32_t kernels() const { return static_cast<std::uint32_t>(trace_.kernels.size()); }
  KernelId any_kernel() { return {static_cast<std::uint32_t>(below(kernels()))}; }
  Nanos delay() { return chance(2) ? Nanos{} : Nanos{below(4'000'000)}; }
  std::optional<KernelId> awaited() { return chance(3) ? std::optional(any_kernel()) : std::nullopt; }
  // Within the period, mostly at its start.
  KernelId kernel_in(const InactivePeriod& period, std::uint32_t from) {
    const std::uint32_t length = length_of(period, kernels());
    const auto place = chance(2) ? from : from + static_cast<std::uint32_t>(below(length));
    return {(period.after.value + place) % kernels()};
  }

  Eviction eviction(const InactivePeriod& period) {
    return {period.tensor, kernel_in(period, 0), chance(2) ? Tier::host : Tier::ssd, delay(), chance(2), awaited()};
  }
  Prefetch prefetch(const InactivePeriod& period) {
    return {period.tensor, kernel_in(period, 1), chance(2), delay(), awaited()};
  }

  Recomputation recomputation(const InactivePeriod& period) {
    Recomputation one{period.tensor, period.after, period.before};
    add_producers(period.tensor, period.before, one.kernels, 0);
    if (chance(8)) one.kernels.insert(one.kernels.begin(), any_kernel());
    if (chance(8) && !one.kernels.empty())
      one.kernels.erase(one.kernels.begin() + static_cast<std::ptrdiff_t>(below(one.kernels.size())));
    return one;
  }
  // What last wrote the tensor, after what made some of the bytes that this read, in the order of the program.
  void add_producers(TensorId tensor, KernelId before, std::vector<KernelId>& chain, std::uint32_t depth) {
    for (std::uint32_t at = before.value; at-- > 0;) {
      const Kernel& kernel = trace_.kernels[at];
      if (std::ranges::find(kernel.writes, tensor, &Access::tensor) == kernel.writes.end()) continue;
      for (const Access& read : kernel.reads)
        if (depth < 3 && chance(2)) add_producers(read.tensor, {at}, chain, depth + 1);
      if (std::ranges::find(chain, KernelId{at}) == chain.end()) chain.push_back({at});
      return;
    }
  }

  std::mt19937_64 random_;
  const Trace& trace_;
  const Lifetimes& lifetimes_;
  const MachineModel& machine_;
  Plan plan_;
};

// Runs a program on numbers that stand for bytes: what a kernel writes depends on the kernel and on what it reads.
class Interpreter {
 public:
  explicit Interpreter(const Trace& trace) : bytes_(trace.tensors.size()) {
    for (std::uint32_t t = 0; t < trace.tensors.size(); ++t)
      if (const Tensor& tensor = trace.tensors[t];
          tensor.persistent || tensor.carried_from || tensor.kind == TensorKind::input)
        bytes_[t] = mixed(1, t);
  }

  // What it reads, one after the other. `original` is the same kernel in the program that does not recompute.
  std::vector<std::uint64_t> run(const Kernel& kernel, KernelId id, const Kernel& original) {
    const auto is_omitted = [&](TensorId tensor) { return original.replay && original.replay->leaves_out(tensor); };
    std::vector<std::uint64_t> reads;
    std::uint64_t seen = mixed(2, id.value);
    for (std::size_t at = 0; at < kernel.reads.size(); ++at) reads.push_back(bytes_[kernel.reads[at].tensor.value]);
    std::size_t at = 0;
    for (const Access& read : original.reads) {
      if (at >= kernel.reads.size()) break;
      const bool left_out = kernel.reads.size() < original.reads.size() && is_omitted(read.tensor);
      if (left_out) continue;
      if (!is_omitted(read.tensor)) seen = mixed(seen, reads[at]);
      ++at;
    }
    std::unordered_map<TensorId, std::uint64_t> written;
    at = 0;
    for (const Access& write : original.writes) {
      if (kernel.writes.size() < original.writes.size() && is_omitted(write.tensor)) continue;
      const TensorId tensor = kernel.writes[at++].tensor;
      const bool keeps_some = !original.replay || is_omitted(write.tensor);
      written[tensor] = mixed(mixed(seen, write.tensor.value), keeps_some ? bytes_[tensor.value] : 0);
    }
    for (const auto& [tensor, bytes] : written) bytes_[tensor.value] = bytes;
    for (const TensorId freed : kernel.frees) bytes_[freed.value] = 0;
    return reads;
  }
  std::uint64_t bytes(TensorId tensor) const { return bytes_[tensor.value]; }

 private:
  static std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
    a = (a ^ b) * 0x9e3779b97f4a7c15u;
    return a ^ (a >> 29);
  }

  std::vector<std::uint64_t> bytes_;  // by tensor
};

void check_that_it_reads_the_same(const Trace& trace, const Recomputed& program) {
  Interpreter plain(trace), again(program.trace);
  std::vector<std::vector<std::uint64_t>> reads;
  for (std::uint32_t at = 0; at < trace.kernels.size(); ++at)
    reads.push_back(plain.run(trace.kernels[at], {at}, trace.kernels[at]));
  for (std::size_t at = 0; at < program.trace.kernels.size(); ++at) {
    const KernelId id = program.original_of[at];
    std::vector<std::uint64_t> expected = reads[id.value];
    if (program.is_replay[at]) {  // without what it omits
      expected.clear();
      for (std::size_t read = 0; read < trace[id].reads.size(); ++read)
        if (!trace[id].replay->leaves_out(trace[id].reads[read].tensor)) expected.push_back(reads[id.value][read]);
    }
    RC_ASSERT(again.run(program.trace.kernels[at], id, trace[id]) == expected);
  }
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t)
    if (trace.tensors[t].persistent) RC_ASSERT(plain.bytes({t}) == again.bytes({t}));
}

bool are_same(const SimulationResult& a, const SimulationResult& b) {
  return a.iteration == b.iteration && a.cold_iteration == b.cold_iteration && a.faults == b.faults &&
         a.peak == b.peak && a.skipped_commands == b.skipped_commands && a.hidden == b.hidden &&
         a.dropped_clean == b.dropped_clean && a.iterations == b.iterations;
}

TEST(RandomPlans, ThoseThatAreAcceptedEndWithinTheCapacitiesAndReadNothingElse) {
  EXPECT_TRUE(rc::check([] {
    const Trace trace = random_trace(*rc::gen::arbitrary<std::uint64_t>(), {.layers_most = 6, .bytes_most = 16 << 20});
    const Lifetimes lifetimes = analyse_lifetimes(trace);
    const auto percent = *rc::gen::inRange<std::uint64_t>(30, 120);
    MachineModel model = *load_machine("a100");
    model.device.memory = std::max(4_MiB, Bytes{std::ranges::max(lifetimes.live).value / 100 * percent});
    model.host.memory = Bytes{*rc::gen::inRange<std::uint64_t>(0, 256) << 20};
    model.host.keeps_copies = *rc::gen::inRange<std::uint64_t>(0, 2);
    const Plan plan = RandomPlan(*rc::gen::arbitrary<std::uint64_t>(), trace, lifetimes, model).make();
    if (const auto program = with_recomputations(trace, plan, "plan")) check_that_it_reads_the_same(trace, *program);
    if (!validate_plan(plan, trace, "", lifetimes, model)) return;
    for (const Policy& policy : kPolicies) {
      if (policy.plan == nullptr || policy.traits.unlimited_device) continue;
      if (!validate_plan(plan, trace, "", lifetimes, model, policy.traits.uses_host)) continue;
      const auto result = simulate(trace, lifetimes, model, policy.traits, &plan);
      if (!result) RC_FAIL(result.error().message);
      if (!result->feasible) continue;
      RC_ASSERT(result->peak.device <= model.device.memory);
      RC_ASSERT(result->peak.host <= (policy.traits.uses_host ? model.host.memory : Bytes{}));
      RC_ASSERT(result->peak.ssd <= model.ssd_capacity());
      RC_ASSERT(result->iteration >= result->ideal + result->recompute);
      const auto again = simulate(trace, lifetimes, model, policy.traits, &plan);
      RC_ASSERT(again && are_same(*again, *result));
    }
  }));
}

// Or the property says little. Always the same ones.
TEST(RandomPlans, HoldAllThatPlansMayHold) {
  std::uint64_t recomputed = 0, during = 0, awaited = 0, delayed = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const Trace trace = random_trace(seed, {.layers_most = 6, .bytes_most = 16 << 20});
    const Lifetimes lifetimes = analyse_lifetimes(trace);
    const MachineModel model = *load_machine("a100");
    const Plan plan = RandomPlan(seed, trace, lifetimes, model).make();
    if (!validate_plan(plan, trace, "", lifetimes, model)) continue;
    recomputed += plan.recomputations.size();
    during += static_cast<std::uint64_t>(std::ranges::count(plan.evictions, true, &Eviction::during));
    for (const Eviction& one : plan.evictions) awaited += one.awaited_by.has_value();
    for (const Prefetch& one : plan.prefetches) delayed += one.delay > Nanos{};
  }
  EXPECT_GT(recomputed, 10u);
  EXPECT_GT(during, 10u);
  EXPECT_GT(awaited, 10u);
  EXPECT_GT(delayed, 10u);
}

}  // namespace
}  // namespace spillway
