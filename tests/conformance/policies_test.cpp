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

TEST(PoliciesProperty, HoldTheCapacitiesGiveKernelsTheirWorkingSetsAndMoveAsMuchAsTheyMust) {
  EXPECT_TRUE(rc::check([] {
    const Trace trace = random_trace(*rc::gen::arbitrary<std::uint64_t>(), {.layers_most = 6, .bytes_most = 16 << 20});
    const Lifetimes lifetimes = analyse_lifetimes(trace);
    const Bytes peak = std::ranges::max(lifetimes.live);
    const auto percent = *rc::gen::inRange<std::uint64_t>(20, 120);
    MachineModel model = machine({std::max<std::uint64_t>(4_MiB .value, peak.value / 100 * percent)},
                                 Bytes{*rc::gen::inRange<std::uint64_t>(0, 256) << 20});
    const auto slower = *rc::gen::element<std::uint64_t>(1, 1, 10, 100);
    model.link.to_device.value /= slower;
    model.ssd.read.value /= slower;
    model.ssd.capacity = *rc::gen::element(4_GiB, 4_GiB, 32_MiB, Bytes{});
    const LeastMoves least = least_moves(trace, lifetimes, model.device.memory);
    const bool fits = peak + packed_bytes(trace) <= model.device.memory;
    for (const Policy& policy : kPolicies) {
      std::optional<Plan> plan;
      if (policy.plan != nullptr) {
        plan = policy.plan({trace, lifetimes, model});
        plan->trace_hash = "hash";
        const auto valid = validate_plan(*plan, trace, "hash", lifetimes, model, policy.traits.uses_host);
        if (!valid) RC_FAIL(valid.error().message);
      }
      const auto result = simulate(trace, lifetimes, model, policy.traits, plan ? &*plan : nullptr);
      RC_ASSERT(result.has_value());
      if (!result->feasible) {
        RC_ASSERT(!fits && policy.name != "ideal");
        continue;
      }
      RC_ASSERT(result->iteration >= result->ideal);
      if (policy.traits.unlimited_device) RC_ASSERT(result->iteration == result->ideal);
      if (!policy.traits.unlimited_device) RC_ASSERT(result->peak.device <= model.device.memory);
      RC_ASSERT(result->peak.host <= (policy.traits.uses_host ? model.host.memory : Bytes{}));
      RC_ASSERT(result->peak.ssd <= model.ssd_capacity());
      if (!policy.traits.kernels_fault) RC_ASSERT(result->faults == 0u);
      if (result->steady && !policy.traits.kernels_fault && !policy.traits.unlimited_device) {
        RC_ASSERT(result->moved(Tier::host, Tier::device) + result->moved(Tier::ssd, Tier::device) >= least.in);
        RC_ASSERT(result->moved(Tier::device, Tier::host) + result->moved(Tier::device, Tier::ssd) >= least.out);
      }
      if (result->steady && !policy.traits.unlimited_device) {
        const Bytes device = model.device.memory, host = policy.traits.uses_host ? model.host.memory : Bytes{};
        RC_ASSERT(result->stall() >= least_wait(trace, lifetimes, device, {}, model.link.to_device));
        RC_ASSERT(result->stall() >= least_wait(trace, lifetimes, device, host, model.ssd_read()));
      }
      if (fits) RC_ASSERT(all_moved(*result) == Bytes{} && result->stall() == Nanos{} && result->faults == 0u);
    }
  }));
}

}  // namespace
}  // namespace spillway
