#include "plan/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <ranges>
#include <unordered_set>

#include "base/check.h"
#include "base/text.h"
#include "memory/tier.h"
#include "trace/text_of.h"

namespace spillway {
namespace {

// "tensor3, tensor7": each tensor once, in the order of its first access.
std::string names(const std::vector<Access>& accesses) {
  std::unordered_set<TensorId> seen;
  std::string text;
  for (const Access& access : accesses) {
    if (!seen.insert(access.tensor).second) continue;
    text += fmt::format("{}tensor{}", text.empty() ? "" : ", ", access.tensor.value);
  }
  return text;
}

// ", after 4 ms, before kernel 7 starts"
std::string more_of(const auto& command) {
  return (command.delay > Nanos{} ? fmt::format(", after {}", to_text(command.delay)) : "") +
         (command.awaited_by ? fmt::format(", before kernel {} starts", command.awaited_by->value) : "");
}

std::string call(std::string_view function, TensorId tensor, Bytes bytes) {
  return fmt::format("{}(tensor{}, {})", function, tensor.value, bytes.value);
}

}  // namespace

std::vector<std::string> listing(const Plan& plan, const Trace& trace, const Lifetimes& lifetimes) {
  CHECK(lifetimes.births.size() == trace.kernels.size() && lifetimes.deaths.size() == trace.kernels.size());
  std::vector<std::string> lines;
  auto prefetch = plan.prefetches.begin();
  auto eviction = plan.evictions.begin();
  auto dropped = plan.recomputations.begin();
  std::multimap<KernelId, const Recomputation*> again;
  for (const Recomputation& one : plan.recomputations) again.emplace(one.before, &one);
  for (std::uint32_t at = 0; at < trace.kernels.size(); ++at) {
    const Kernel& kernel = trace.kernels[at];
    for (const TensorId tensor : lifetimes.births[at]) lines.push_back(call("alloc", tensor, trace[tensor].bytes));
    for (; prefetch != plan.prefetches.end() && prefetch->at == KernelId{at}; ++prefetch)
      lines.push_back(fmt::format("prefetch(tensor{}, {}{}{})", prefetch->tensor.value,
                                  trace[prefetch->tensor].bytes.value, prefetch->keeps_copy ? ", keeping its copy" : "",
                                  more_of(*prefetch)));
    for (const auto& [before, one] : std::ranges::subrange(again.lower_bound({at}), again.upper_bound({at}))) {
      lines.push_back(fmt::format("// tensor{} again", one->tensor.value));
      for (const KernelId id : one->kernels)
        lines.push_back(fmt::format("{}(), as kernel {}", trace[id].name, id.value));
    }
    lines.push_back(fmt::format("// kernel {}, {}, {}", at, to_text(kernel.phase), to_text(kernel.duration)));
    lines.push_back(fmt::format("{}({} -> {})", kernel.name, names(kernel.reads), names(kernel.writes)));
    for (const TensorId tensor : lifetimes.deaths[at]) lines.push_back(call("free", tensor, trace[tensor].bytes));
    for (; eviction != plan.evictions.end() && eviction->after == KernelId{at}; ++eviction)
      lines.push_back(fmt::format("evict(tensor{}, {}, {}{}{})", eviction->tensor.value,
                                  trace[eviction->tensor].bytes.value, to_text(eviction->to),
                                  eviction->during ? ", during the kernel" : "", more_of(*eviction)));
    for (; dropped != plan.recomputations.end() && dropped->drop_after == KernelId{at}; ++dropped)
      lines.push_back(call("drop", dropped->tensor, trace[dropped->tensor].bytes));
  }
  CHECK(prefetch == plan.prefetches.end() && eviction == plan.evictions.end());  // They were in order.
  return lines;
}

Bytes evicted_to(Tier tier, const Plan& plan, const Trace& trace) {
  unsigned __int128 sum = 0;
  for (const Eviction& eviction : plan.evictions)
    if (eviction.to == tier) sum += trace[eviction.tensor].bytes.value;
  return Bytes{static_cast<std::uint64_t>(std::min<unsigned __int128>(sum, UINT64_MAX))};
}

}  // namespace spillway
