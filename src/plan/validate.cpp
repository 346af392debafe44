#include "plan/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "plan/recomputation.h"

namespace spillway {
namespace {

class Validator {
 public:
  Validator(const Plan& plan, const std::string& where, const Trace& trace, const Lifetimes& lifetimes,
            const MachineModel& machine, bool uses_host)
      : plan_(plan),
        where_(where),
        trace_(trace),
        lifetimes_(lifetimes),
        machine_(machine),
        uses_host_(uses_host),
        kernels_(static_cast<std::uint32_t>(trace.kernels.size())),
        evicted_at_(lifetimes.periods.size()),
        fetched_(lifetimes.periods.size()),
        first_period_(trace.tensors.size() + 1) {
    CHECK(lifetimes.tensors.size() == trace.tensors.size());
    CHECK(std::ranges::is_sorted(lifetimes.periods, {}, &InactivePeriod::tensor));
    for (const InactivePeriod& period : lifetimes.periods) ++first_period_[period.tensor.value + 1];
    for (std::size_t tensor = 0; tensor < trace.tensors.size(); ++tensor)
      first_period_[tensor + 1] += first_period_[tensor];
  }

  Result<> run() {
    for (std::size_t index = 0; index < plan_.evictions.size(); ++index) TRY_VOID(check_eviction(index));
    for (std::size_t index = 0; index < plan_.prefetches.size(); ++index) TRY_VOID(check_prefetch(index));
    return check_capacity();
  }

 private:
  std::unexpected<Error> wrong(std::string_view list, std::size_t index, std::string why) {
    return fail(Errc::bad_input, fmt::format("{}: {}[{}]: {}", where_, list, index, why));
  }

  Result<> check_names(std::string_view list, std::size_t index, TensorId tensor, KernelId kernel) {
    if (tensor.value >= trace_.tensors.size())
      return wrong(list, index,
                   fmt::format("there is no tensor {}; the trace has {}", tensor.value, trace_.tensors.size()));
    if (kernel.value >= kernels_)
      return wrong(list, index, fmt::format("there is no kernel {}; the trace has {}", kernel.value, kernels_));
    if (trace_[tensor].bytes < kLeastMovedBytes)
      return wrong(list, index,
                   fmt::format("tensor {} has {}; those below {} share blocks and are not moved by plans", tensor.value,
                               to_text(trace_[tensor].bytes), to_text(kLeastMovedBytes)));
    return {};
  }

  Result<> check_awaited(std::string_view list, std::size_t index, std::optional<KernelId> by) {
    if (!by || by->value < kernels_) return {};
    return wrong(list, index, fmt::format("awaited_by: there is no kernel {}; the trace has {}", by->value, kernels_));
  }

  static bool only_reads(const Kernel& kernel, TensorId tensor) {
    const auto is_it = [&](const Access& access) { return access.tensor == tensor; };
    return std::ranges::any_of(kernel.reads, is_it) && std::ranges::none_of(kernel.writes, is_it);
  }

  // A tensor that is carried into another one has that one's name in the next iteration.
  bool is_renamed(const InactivePeriod& where) const {
    const auto& heir = lifetimes_.tensors[where.tensor.value].heir;
    return where.wraps && heir && *heir != where.tensor;
  }
  // How many kernels after the period's start the tensor, under its name, is used again or gone.
  std::uint32_t length(const InactivePeriod& where) const {
    return is_renamed(where) ? kernels_ - where.after.value : length_of(where, kernels_);
  }

  // The tensor's inactive period for which `inside` holds. Only two can hold the kernel: the last that starts at or
  // before it, and the one that wraps around the iteration's end, which is the tensor's last.
  template <class Inside>
  std::optional<std::size_t> period(TensorId tensor, KernelId kernel, Inside inside) const {
    const std::size_t first = first_period_[tensor.value], end = first_period_[tensor.value + 1];
    const auto periods = std::span(lifetimes_.periods).subspan(first, end - first);
    const auto later = std::ranges::upper_bound(periods, kernel, {}, &InactivePeriod::after);
    const auto at = first + static_cast<std::size_t>(later - periods.begin());
    for (const std::size_t candidate : {at, at - 1, end - 1})
      if (candidate >= first && candidate < end && inside(lifetimes_.periods[candidate])) return candidate;
    return std::nullopt;
  }

  Result<> check_eviction(std::size_t index) {
    const Eviction& eviction = plan_.evictions[index];
    TRY_VOID(check_names("evictions", index, eviction.tensor, eviction.after));
    if (index > 0 && plan_.evictions[index - 1].after > eviction.after)
      return wrong("evictions", index, "it stands after one of a later kernel; sort the list by after_kernel");
    if (eviction.to == Tier::device) return wrong("evictions", index, "it goes to the device; write host or ssd");
    if (eviction.to == Tier::host && !uses_host_)
      return wrong("evictions", index,
                   fmt::format("it goes to host memory, which {} does not use; write ssd", plan_.policy));
    TRY_VOID(check_awaited("evictions", index, eviction.awaited_by));
    if (eviction.during && !only_reads(trace_.kernels[eviction.after.value], eviction.tensor))
      return wrong("evictions", index,
                   fmt::format("kernel {} does not just read tensor {}, so it cannot leave during that",
                               eviction.after.value, eviction.tensor.value));
    // At least one kernel must pass while it is away.
    const auto found = period(eviction.tensor, eviction.after, [&](const InactivePeriod& candidate) {
      return place_in(candidate, eviction.after, kernels_) + 1 < length(candidate);
    });
    if (!found)
      return wrong("evictions", index,
                   fmt::format("tensor {} is dead, or the next kernel uses it, when kernel {} has ended; an eviction "
                               "belongs into an inactive period",
                               eviction.tensor.value, eviction.after.value));
    if (evicted_at_[*found])
      return wrong("evictions", index,
                   fmt::format("tensor {} has left before in this inactive period", eviction.tensor.value));
    evicted_at_[*found] = index;
    return {};
  }

  Result<> check_prefetch(std::size_t index) {
    const Prefetch& prefetch = plan_.prefetches[index];
    TRY_VOID(check_names("prefetches", index, prefetch.tensor, prefetch.at));
    if (index > 0 && plan_.prefetches[index - 1].at > prefetch.at)
      return wrong("prefetches", index, "it stands after one of a later kernel; sort the list by at_kernel");
    TRY_VOID(check_awaited("prefetches", index, prefetch.awaited_by));
    const auto found = period(prefetch.tensor, prefetch.at, [&](const InactivePeriod& candidate) {
      const std::uint32_t place = place_in(candidate, prefetch.at, kernels_);
      return !candidate.last && place > 0 && place < length(candidate);
    });
    if (!found)
      return wrong("prefetches", index,
                   fmt::format("tensor {} is dead, in use, or only waits to be freed when kernel {} starts; a prefetch "
                               "belongs into an inactive period that a use ends",
                               prefetch.tensor.value, prefetch.at.value));
    const auto eviction = evicted_at_[*found];
    const InactivePeriod& where = lifetimes_.periods[*found];
    if (!eviction ||
        place_in(where, plan_.evictions[*eviction].after, kernels_) >= place_in(where, prefetch.at, kernels_))
      return wrong(
          "prefetches", index,
          fmt::format(
              "no lower tier holds tensor {} when kernel {} starts; evict it earlier in the same inactive period",
              prefetch.tensor.value, prefetch.at.value));
    if (fetched_[*found])
      return wrong("prefetches", index,
                   fmt::format("tensor {} has been asked back before in this inactive period", prefetch.tensor.value));
    fetched_[*found] = true;
    return {};
  }

  // A tensor that has left takes space below until the kernel that uses it next.
  Result<> check_capacity() {
    for (const Tier tier : {Tier::host, Tier::ssd}) {
      std::vector<std::uint64_t> more(kernels_ + 1), less(kernels_ + 1);
      std::uint64_t at_start = 0;
      for (std::size_t at = 0; at < evicted_at_.size(); ++at) {
        if (!evicted_at_[at] || plan_.evictions[*evicted_at_[at]].to != tier) continue;
        const Eviction& eviction = plan_.evictions[*evicted_at_[at]];
        const std::uint64_t bytes = trace_[eviction.tensor].bytes.value;
        const std::uint32_t before = lifetimes_.periods[at].before.value;
        more[eviction.after.value + 1] += bytes;
        less[before] += bytes;
        if (before <= eviction.after.value || is_renamed(lifetimes_.periods[at])) at_start += bytes;
      }
      const std::uint64_t limit = (tier == Tier::host ? machine_.host_memory() : machine_.ssd_capacity()).value;
      std::uint64_t held = at_start;
      // What leaves after the last kernel counts from the first on: it is among what is held at the start.
      for (std::uint32_t kernel = 0; kernel < kernels_; ++kernel) {
        CHECK(held + more[kernel] >= less[kernel]);  // What comes back has left.
        held = held + more[kernel] - less[kernel];
        if (held > limit)
          return fail(Errc::bad_input,
                      fmt::format("{}: it puts {} into {} memory by kernel {}, where {} fit; evict less or set {}.{}",
                                  where_, to_text(Bytes{held}), to_text(tier), kernel, to_text(Bytes{limit}),
                                  to_text(tier), tier == Tier::host ? "memory" : "capacity"));
      }
    }
    return {};
  }

  const Plan& plan_;
  const std::string& where_;
  const Trace& trace_;
  const Lifetimes& lifetimes_;
  const MachineModel& machine_;
  bool uses_host_;
  std::uint32_t kernels_;
  std::vector<std::optional<std::size_t>> evicted_at_;  // by inactive period: the index of its eviction
  std::vector<bool> fetched_;                           // by inactive period
  std::vector<std::size_t> first_period_;               // by tensor; one entry more at the end
};

}  // namespace

Result<> validate_plan(const Plan& plan, const Trace& trace, const std::string& trace_hash, const Lifetimes& lifetimes,
                       const MachineModel& machine, bool uses_host, const std::string& where) {
  if (plan.trace_hash != trace_hash)
    return fail(Errc::bad_input, fmt::format("{}: it was made for trace {} ({}), not for {} ({}); plan this trace anew",
                                             where, plan.trace_name, plan.trace_hash, trace.name, trace_hash));
  if (!plan.recomputations.empty()) {
    TRY(const Recomputed program, with_recomputations(trace, plan, where));
    const Lifetimes of_program = analyse_lifetimes(program.trace);
    return Validator(program.plan, where, program.trace, of_program, machine, uses_host).run();
  }
  return Validator(plan, where, trace, lifetimes, machine, uses_host).run();
}

}  // namespace spillway
