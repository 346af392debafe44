// G10's planner against one that keeps plain arrays and counts everything anew, kernel by kernel.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "plan/machine_file.h"
#include "plan/validate.h"
#include "policies/policies.h"
#include "trace/random_trace.h"

namespace spillway {
namespace {

using Wide = __int128;

struct PlainChoice {
  Tier to = Tier::ssd;
  std::uint32_t left = 0, returns = 0;  // kernels after the period's first
  Wide benefit = 0;
  double ratio = 0;
};

// What each kernel can still carry one way.
struct PlainLink {
  std::vector<Wide> link, ssd;
  Wide free(Tier tier, std::uint32_t kernel) const {
    return tier == Tier::host ? link[kernel] : std::min(link[kernel], ssd[kernel]);
  }
};

struct PlainPlanner {
  const Problem& problem;
  bool use_host;
  std::uint32_t kernels = static_cast<std::uint32_t>(problem.trace.kernels.size());
  std::vector<Wide> slot{};  // nanoseconds
  std::vector<Wide> excess{}, host{}, ssd{};
  PlainLink out{}, in{};
  std::map<std::size_t, PlainChoice> booked{};
  Plan plan{};

  const InactivePeriod& period(std::size_t index) const { return problem.lifetimes.periods[index]; }
  Wide bytes(std::size_t index) const { return problem.trace[period(index).tensor].bytes.value; }
  std::uint32_t length(std::size_t index) const { return length_of(period(index), kernels); }
  std::uint32_t place(std::size_t index, std::uint32_t at) const { return (period(index).after.value + at) % kernels; }

  void prepare() {
    if (slot.empty())
      for (const Kernel& kernel : problem.trace.kernels) slot.push_back((kernel.gap + kernel.duration).value);
    out = in = {};
    excess.clear();
    booked.clear();
    plan = {};
    const auto carried = [](Wide nanos, BytesPerSecond rate) { return nanos * rate.value / 1'000'000'000; };
    const MachineModel& machine = problem.machine;
    for (std::uint32_t kernel = 0; kernel < kernels; ++kernel) {
      const Kernel& here = problem.trace.kernels[kernel];
      const Kernel& next = problem.trace.kernels[(kernel + 1) % kernels];
      const Wide later = slot[kernel] - here.gap.value + next.gap.value;  // a prefetch starts after the gap
      out.link.push_back(carried(slot[kernel], machine.link.from_device));
      out.ssd.push_back(carried(slot[kernel], machine.ssd_write()));
      in.link.push_back(carried(later, machine.link.to_device));
      in.ssd.push_back(carried(later, machine.ssd_read()));
      excess.push_back(Wide{problem.lifetimes.live[kernel].value} - machine.device.memory.value);
    }
    host.assign(kernels, 0);
    ssd.assign(kernels, 0);
  }

  bool plannable(std::size_t index) const {
    const Tensor& tensor = problem.trace[period(index).tensor];
    const bool returns = !period(index).wraps || tensor.persistent || tensor.carried_from == period(index).tensor;
    return returns && !period(index).last && tensor.bytes >= kLeastMovedBytes;
  }

  bool has_room(std::size_t index, const std::vector<Wide>& tier, Bytes capacity) const {
    for (std::uint32_t at = 1; at < length(index); ++at)
      if (tier[place(index, at)] + bytes(index) > capacity.value) return false;
    return true;
  }

  // Out as early, in as late as the links allow; nothing if they meet.
  std::optional<PlainChoice> window(std::size_t index, Tier tier, const PlainLink& way_out,
                                    const PlainLink& way_in) const {
    PlainChoice choice{.to = tier, .left = 0, .returns = length(index)};
    for (Wide rest = bytes(index); rest > 0; rest -= way_out.free(tier, place(index, choice.left)))
      if (++choice.left >= length(index)) return std::nullopt;
    for (Wide rest = bytes(index); rest > 0; rest -= way_in.free(tier, place(index, choice.returns)))
      if (--choice.returns == 0) return std::nullopt;
    if (choice.left >= choice.returns) return std::nullopt;
    return choice;
  }

  std::optional<PlainChoice> choose(std::size_t index, const PlainLink& idle_out, const PlainLink& idle_in) const {
    auto choice =
        has_room(index, ssd, problem.machine.ssd_capacity()) ? window(index, Tier::ssd, out, in) : std::nullopt;
    const auto idle = window(index, Tier::ssd, idle_out, idle_in);
    const bool full = !choice || choice->left > idle->left || choice->returns < idle->returns;
    if (full && use_host && has_room(index, host, problem.machine.host.memory))
      if (const auto in_host = window(index, Tier::host, out, in)) choice = in_host;
    if (!choice) return std::nullopt;
    for (std::uint32_t at = choice->left + 1; at < choice->returns; ++at)
      choice->benefit += std::clamp<Wide>(excess[place(index, at)], 0, bytes(index)) * slot[place(index, at)];
    if (choice->benefit == 0) return std::nullopt;
    choice->ratio = static_cast<double>(choice->benefit) / cost(index, choice->to);
    return choice;
  }

  double cost(std::size_t index, Tier tier) const {
    const MachineModel& machine = problem.machine;
    const Bytes size = problem.trace[period(index).tensor].bytes;
    const auto time = [&](BytesPerSecond link, BytesPerSecond drive, Nanos latency) {
      const bool far = tier == Tier::ssd;
      return static_cast<double>(
          (transfer_time(size, far ? std::min(link, drive) : link) + (far ? latency : machine.link.latency)).value);
    };
    return time(machine.link.from_device, machine.ssd_write(), machine.ssd.write_latency) +
           time(machine.link.to_device, machine.ssd_read(), machine.ssd.read_latency);
  }

  void book(std::size_t index, const PlainChoice& choice) {
    const auto take = [&](PlainLink& way, auto place_of) {
      Wide rest = bytes(index);
      for (std::uint32_t at = 0; rest > 0; ++at) {
        const std::uint32_t kernel = place_of(at);
        const Wide taken = std::min(rest, way.free(choice.to, kernel));
        way.link[kernel] -= taken;
        if (choice.to == Tier::ssd) way.ssd[kernel] -= taken;
        rest -= taken;
      }
    };
    take(out, [&](std::uint32_t at) { return place(index, 1 + at); });
    take(in, [&](std::uint32_t at) { return place(index, length(index) - 1 - at); });
    for (std::uint32_t at = choice.left + 1; at < choice.returns; ++at) excess[place(index, at)] -= bytes(index);
    for (std::uint32_t at = 1; at < length(index); ++at)
      (choice.to == Tier::host ? host : ssd)[place(index, at)] += bytes(index);
    plan.evictions.push_back({period(index).tensor, period(index).after, choice.to});
    booked[index] = choice;
  }

  // Highest ratio first. Without host memory ratios only fall, and each round looks at all of them anew; with it they
  // may rise once the SSD is busy, and the planner promises only to look at the one that last seemed the best.
  void choose_evictions() {
    const PlainLink idle_out = out, idle_in = in;
    std::map<std::size_t, double> ratios;
    const auto look = [&](std::size_t index) {
      const auto now = choose(index, idle_out, idle_in);
      now ? ratios.insert_or_assign(index, now->ratio) : (ratios.erase(index), std::pair{ratios.end(), false});
      return now;
    };
    for (std::size_t index = 0; index < problem.lifetimes.periods.size(); ++index)
      if (plannable(index)) look(index);
    const auto before = [&](const auto& a, const auto& b) {
      const InactivePeriod &x = period(a.first), &y = period(b.first);
      return std::tuple(-a.second, x.after, x.tensor) < std::tuple(-b.second, y.after, y.tensor);
    };
    while (!ratios.empty() && std::ranges::max(excess) > 0) {
      if (!use_host)
        for (const auto& [index, stale] : std::map(ratios)) look(index);
      if (ratios.empty()) break;
      const auto best = *std::ranges::min_element(ratios, before);
      const auto now = look(best.first);
      if (!now || std::ranges::min_element(ratios, before)->first != best.first) continue;
      book(best.first, *now);
      ratios.erase(best.first);
    }
  }

  void prefetch_eagerly() {
    std::vector<std::tuple<std::uint32_t, std::uint32_t, TensorId, std::size_t>> order;
    for (const auto& [index, choice] : booked)
      order.emplace_back(place(index, choice.returns), length(index) - choice.returns, period(index).tensor, index);
    std::ranges::sort(order);
    for (const auto& [begin, kernels_left, tensor, index] : order) {
      PlainChoice& choice = booked[index];
      while (choice.returns - 1 > choice.left && excess[place(index, choice.returns - 1)] + bytes(index) <= 0)
        excess[place(index, --choice.returns)] += bytes(index);
      plan.prefetches.push_back({period(index).tensor, {place(index, choice.returns)}});
    }
  }

  Wide worst() const { return std::max<Wide>(0, std::ranges::max(excess)); }

  // Before each kernel at which the excess grows there is time for that much to leave.
  std::vector<Wide> slots_with_waits() const {
    std::vector<Wide> slots = slot;
    for (std::uint32_t kernel = 0; kernel < kernels; ++kernel) {
      const std::uint32_t before = (kernel + kernels - 1) % kernels;
      const Wide grows = std::max<Wide>(excess[kernel], 0) - std::max<Wide>(excess[before], 0);
      if (grows <= 0) continue;
      const bool to_host = use_host && host[kernel] < problem.machine.host.memory.value;
      const BytesPerSecond link = problem.machine.link.from_device;
      const BytesPerSecond rate = to_host ? link : std::min(link, problem.machine.ssd_write());
      slots[before] += transfer_time(Bytes{static_cast<std::uint64_t>(grows)}, rate).value;
    }
    return slots;
  }

  void make() {
    prepare();
    choose_evictions();
    const Wide first = worst();
    for (int round = 1; round < 8 && worst() > 0; ++round) {
      PlainPlanner next{problem, use_host};
      next.slot = slots_with_waits();
      next.prepare();
      next.choose_evictions();
      if (next.worst() >= worst()) break;
      slot = next.slot, excess = next.excess, host = next.host, booked = next.booked, plan = next.plan;
    }
    plan.overcommitted = {static_cast<std::uint64_t>(first)};
    prefetch_eagerly();
    std::ranges::stable_sort(plan.evictions, {}, &Eviction::after);
    std::ranges::stable_sort(plan.prefetches, {}, &Prefetch::at);
  }
};

TEST(G10Property, PlansAreThoseOfPlainArrays) {
  EXPECT_TRUE(rc::check([] {
    const Trace trace = random_trace(*rc::gen::arbitrary<std::uint64_t>());
    const Lifetimes lifetimes = analyse_lifetimes(trace);
    MachineModel machine = *load_machine("a100");
    machine.link.to_device = machine.link.from_device = {200'000'000'000};
    const auto percent = *rc::gen::inRange<std::uint64_t>(60, 100);
    machine.device.memory = {std::max<std::uint64_t>(1, std::ranges::max(lifetimes.live).value / 100 * percent)};
    machine.host.memory = Bytes{*rc::gen::inRange<std::uint64_t>(0, 128) << 20};
    machine.ssd.capacity = Bytes{*rc::gen::inRange<std::uint64_t>(1, 512) << 20};
    machine.ssd.count = *rc::gen::inRange(1u, 100u);
    const Problem problem{trace, lifetimes, machine};
    const bool use_host = *rc::gen::arbitrary<bool>();
    const Plan plan = use_host ? plan_g10(problem) : plan_g10_gds(problem);
    PlainPlanner plain{problem, use_host};
    plain.make();
    RC_ASSERT(plan.overcommitted == plain.plan.overcommitted);
    RC_CLASSIFY(plan.overcommitted > Bytes{}, "overcommitted");
    RC_CLASSIFY(plan.moves() > 4, "more than two periods");
    RC_ASSERT(plan.evictions == plain.plan.evictions);
    RC_ASSERT(plan.prefetches == plain.plan.prefetches);
  }));
}

}  // namespace
}  // namespace spillway
