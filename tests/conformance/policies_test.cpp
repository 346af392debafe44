// Every policy on random traces and machines, planned, checked and simulated to the end.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <optional>

#include "analysis/least_moves.h"
#include "analysis/least_wait.h"
#include "machines/sim/simulate.h"
#include "plan/machine_file.h"
#include "plan/validate.h"
#include "policies/policies.h"
#include "trace/random_trace.h"
#include "trace/validate.h"

namespace spillway {
namespace {

MachineModel machine(Bytes device, Bytes host) {
  MachineModel model = *load_machine("a100");
  model.device.memory = device;
  model.host.memory = host;
  return model;
}

Bytes all_moved(const SimulationResult& result) {
  Bytes sum;
  for (const Tier from : kTiers)
    for (const Tier to : kTiers)
      if (from != to) sum += result.moved(from, to);
  return sum;
}

// Tensors that share a block hold all of it as long as one of them lives.
Bytes packed_bytes(const Trace& trace) {
  Bytes sum;
  for (const Tensor& tensor : trace.tensors)
    if (tensor.bytes < 4_KiB) sum += tensor.bytes;
  return sum;
}

// Else the property below would say nothing of recomputation. Random cases of a short run may have none.
TEST(Policies, SomeRecomputeOnRandomTraces) {
  std::size_t recomputed = 0;  // tensors
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Trace trace = random_trace(seed, {.layers_most = 6, .bytes_most = 16 << 20});
    const Lifetimes lifetimes = analyse_lifetimes(trace);
    const MachineModel model = machine(Bytes{std::ranges::max(lifetimes.live).value * 8 / 10}, Bytes{});
    for (const char* name : {"tensile", "capuchin"}) {
      const Policy policy = *policy_by_name(name);
      recomputed += policy.plan({trace, lifetimes, model, policy.traits.parameters}).recomputations.size();
    }
  }
  EXPECT_GT(recomputed, 0u);
}

TEST(PoliciesProperty, HoldTheCapacitiesGiveKernelsTheirWorkingSetsAndMoveAsMuchAsTheyMust) {
  EXPECT_TRUE(rc::check([&] {
    const Trace trace = random_trace(*rc::gen::arbitrary<std::uint64_t>(), {.layers_most = 6, .bytes_most = 16 << 20});
    const Lifetimes lifetimes = analyse_lifetimes(trace);
    const Bytes peak = std::ranges::max(lifetimes.live);
    const auto percent = *rc::gen::inRange<std::uint64_t>(20, 120);
    MachineModel model = machine({std::max<std::uint64_t>(4_MiB .value, peak.value / 100 * percent)},
                                 Bytes{*rc::gen::inRange<std::uint64_t>(0, 256) << 20});
    model.host.keeps_copies = *rc::gen::inRange<std::uint64_t>(0, 2);
    const auto slower = *rc::gen::element<std::uint64_t>(1, 1, 10, 100);
    model.link.to_device.value /= slower;
    model.ssd.read.value /= slower;
    model.ssd.capacity = *rc::gen::element(4_GiB, 4_GiB, 32_MiB, Bytes{});
    model.fault.latency = Nanos{45'000};
    model.fault.batch = *rc::gen::element<std::uint64_t>(1, 1, 20, 256);
    model.fault.widen = *rc::gen::inRange<std::uint64_t>(0, 2);
    if (*rc::gen::arbitrary<bool>())  // Enough for all that begins a page and does not fill it.
      model.flash = FlashModel{.channels = 1,
                               .dies = 1,
                               .planes = *rc::gen::element<std::uint64_t>(1, 3),
                               .pages = *rc::gen::element<std::uint64_t>(7, 256),
                               .over_provisioning = 150};
    RC_ASSERT(check_machine(model).has_value());
    const LeastMoves least = least_moves(trace, lifetimes, model.device.memory);
    const bool fits = peak + packed_bytes(trace) < model.device.memory;
    for (const Policy& policy : kPolicies) {
      std::optional<Plan> plan;
      if (policy.plan != nullptr) {
        plan = policy.plan({trace, lifetimes, model, policy.traits.parameters});
        RC_ASSERT(*plan == policy.plan({trace, lifetimes, model, policy.traits.parameters}));
        plan->trace_hash = "hash";
        if (plan->shortfall != PerTier<Bytes>{}) {
          RC_ASSERT(!fits || policy.name == "flashneuron");
          continue;
        }
        const auto valid = validate_plan(*plan, trace, "hash", lifetimes, model, policy.traits.uses_host);
        if (!valid) RC_FAIL(valid.error().message);
      }
      const auto result = simulate(trace, lifetimes, model, policy.traits, plan ? &*plan : nullptr);
      RC_ASSERT(result.has_value());
      if (!result->feasible) {
        RC_ASSERT((!fits || policy.name == "flashneuron") && policy.name != "ideal");
        continue;
      }
      RC_ASSERT(result->iteration >= result->ideal);
      if (policy.traits.unlimited_device) RC_ASSERT(result->iteration == result->ideal);
      if (!policy.traits.unlimited_device) RC_ASSERT(result->peak.device <= model.device.memory);
      RC_ASSERT(result->peak.host <= (policy.traits.uses_host ? model.host.memory : Bytes{}));
      RC_ASSERT(result->peak.ssd <= model.ssd_capacity());
      if (!policy.traits.kernels_fault) RC_ASSERT(result->faults == 0u);
      if (fits && policy.name != "flashneuron")  // It moves unless what stays fits beside the largest working set.
        RC_ASSERT(all_moved(*result) == Bytes{} && result->stall() == Nanos{} && result->faults == 0u);
      if (plan && !plan->recomputations.empty()) {
        RC_ASSERT(result->recomputed_kernels > 0u && result->stall() >= result->recompute);
        continue;  // What is discarded is not moved: the bounds are of programs that do not recompute.
      }
      if (result->steady && !policy.traits.kernels_fault && !policy.traits.unlimited_device) {
        RC_ASSERT(result->moved(Tier::host, Tier::device) + result->moved(Tier::ssd, Tier::device) >= least.in);
        RC_ASSERT(result->moved(Tier::device, Tier::host) + result->moved(Tier::device, Tier::ssd) >= least.out);
      }
      // The bound is of kernels that keep all that they touch until they end. One that faults in batches does not.
      const bool keeps_all = !policy.traits.kernels_fault || model.fault.batch == 1;
      if (result->steady && !policy.traits.unlimited_device && keeps_all) {
        const Bytes device = model.device.memory, host = policy.traits.uses_host ? model.host.memory : Bytes{};
        RC_ASSERT(result->stall() >= least_wait(trace, lifetimes, device, {}, model.link.to_device));
        RC_ASSERT(result->stall() >= least_wait(trace, lifetimes, device, host, model.ssd_read()));
      }
    }
  }));
}

// What is learned alone moves nothing.
TEST(PoliciesProperty, DeepumFromFaultsIsUvmWithoutItsSteps) {
  EXPECT_TRUE(rc::check([] {
    const Trace trace = random_trace(*rc::gen::arbitrary<std::uint64_t>(), {.layers_most = 6, .bytes_most = 16 << 20});
    const Lifetimes lifetimes = analyse_lifetimes(trace);
    const auto percent = *rc::gen::inRange<std::uint64_t>(20, 120);
    const MachineModel model = machine(
        {std::max<std::uint64_t>(4_MiB .value, std::ranges::max(lifetimes.live).value / 100 * percent)}, 64_MiB);
    const auto run = [&](const char* name) {
      const auto result = simulate(trace, lifetimes, model, policy_by_name(name)->traits, nullptr);
      RC_ASSERT(result.has_value());
      return *result;
    };
    const SimulationResult plain = run("uvm"), learning = run("deepum-faults:prefetch=0,pre-evict=0");
    RC_ASSERT(learning.feasible == plain.feasible);
    RC_ASSERT(learning.iteration == plain.iteration);
    RC_ASSERT(learning.faults == plain.faults);
    RC_ASSERT(all_moved(learning) == all_moved(plain));
  }));
}

TEST(PoliciesProperty, InPyTorchsPoolTheyHoldTheCapacities) {
  EXPECT_TRUE(rc::check([] {
    const Trace trace = random_trace(*rc::gen::arbitrary<std::uint64_t>(), {.layers_most = 6, .bytes_most = 16 << 20});
    const Lifetimes lifetimes = analyse_lifetimes(trace);
    const auto percent = *rc::gen::inRange<std::uint64_t>(20, 120);
    const MachineModel model = machine(
        {std::max<std::uint64_t>(4_MiB .value, std::ranges::max(lifetimes.live).value / 100 * percent)}, 64_MiB);
    for (const char* name : {"uvm:pool=1", "deepum-faults:pool=1", "deepum-faults:pool=1,invalidate=0"}) {
      const auto result = simulate(trace, lifetimes, model, policy_by_name(name)->traits, nullptr);
      RC_ASSERT(result.has_value());
      if (!result->feasible) continue;
      RC_ASSERT(result->iteration >= result->ideal);
      RC_ASSERT(result->peak.device <= model.device.memory && result->peak.host <= model.host.memory);
    }
  }));
}

// As the rows of blocks are for which runs plan: each tensor has blocks of its own.
Trace in_whole_blocks(Trace trace) {
  for (Tensor& tensor : trace.tensors)
    tensor.bytes = kBlockBytes * ((tensor.bytes.value + kBlockBytes.value - 1) / kBlockBytes.value);
  for (Kernel& kernel : trace.kernels)
    for (auto* accesses : {&kernel.reads, &kernel.writes})
      for (Access& access : *accesses) access.end = trace[access.tensor].bytes;
  return trace;
}

TEST(PoliciesProperty, PlansOfRunsNeedNoMoreThanTheWorkingSetAndMoveAsMuchAsTheyMust) {
  EXPECT_TRUE(rc::check([] {
    const Trace trace = in_whole_blocks(
        random_trace(*rc::gen::arbitrary<std::uint64_t>(),
                     {.layers_most = 8, .bytes_most = 16 << 20, .carries = false, .partial_accesses = false}));
    RC_ASSERT(validate(trace, "random").has_value());
    const Lifetimes lifetimes = analyse_lifetimes(trace);
    const Bytes peak = std::ranges::max(lifetimes.live), working_set = std::ranges::max(lifetimes.working_set);
    const auto percent = *rc::gen::inRange<std::uint64_t>(20, 120);
    MachineModel model = machine(std::max(working_set, Bytes{peak.value / 100 * percent}), Bytes{});
    model.link.to_device.value /= *rc::gen::element<std::uint64_t>(1, 10, 100);
    const LeastMoves least = least_moves(trace, lifetimes, model.device.memory);
    for (const Policy& policy : kPolicies) {
      if (!policy.plan || !runs_for_real(policy)) continue;
      Plan plan = policy.plan({trace, lifetimes, model});
      plan.trace_hash = "hash";
      const auto valid = validate_plan(plan, trace, "hash", lifetimes, model, policy.traits.uses_host);
      if (!valid) RC_FAIL(valid.error().message);
      const auto result = simulate(trace, lifetimes, model, policy.traits, &plan, Foreknowledge::iteration);
      RC_ASSERT(result.has_value() && result->feasible);
      RC_ASSERT(result->peak.device <= model.device.memory);
      RC_ASSERT(result->iteration >= result->ideal);
      if (peak <= model.device.memory) RC_ASSERT(all_moved(*result) == Bytes{} && result->stall() == Nanos{});
      if (!result->steady) continue;
      RC_ASSERT(result->moved(Tier::ssd, Tier::device) >= least.in);
      RC_ASSERT(result->moved(Tier::device, Tier::ssd) >= least.out);
      RC_ASSERT(result->stall() >= least_wait(trace, lifetimes, model.device.memory, {}, model.link.to_device));
      RC_ASSERT(result->stall() >= least_wait(trace, lifetimes, model.device.memory, {}, model.ssd_read()));
    }
  }));
}

}  // namespace
}  // namespace spillway
