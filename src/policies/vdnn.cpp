#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "plan/validate.h"
#include "policies/policies.h"

namespace spillway {
namespace {

constexpr std::string_view kConvolution = "conv";

bool is_convolution(const Kernel& kernel) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return !std::ranges::search(kernel.name, kConvolution, same).empty();
}

std::optional<KernelId> next_of(std::uint32_t at, const Trace& trace) {
  return at + 1 < trace.kernels.size() ? std::optional(KernelId{at + 1}) : std::nullopt;
}

}  // namespace

// vDNN's vDNN_conv, as its reviews (TENSILE section VI, G10 section 8) and TENSILE's authors' code describe it: what a
// convolution reads for the last time in the forward pass leaves while the convolution runs, and the next kernel waits
// for that. In the backward pass each kernel brings what the next one reads that misses something, no further than to
// the next convolution; the kernel after it waits.
Plan plan_vdnn(const Problem& problem) {
  const Trace& trace = problem.trace;
  const auto kernels = static_cast<std::uint32_t>(trace.kernels.size());
  std::vector<std::optional<std::uint32_t>> last_forward(trace.tensors.size()), first_backward(trace.tensors.size());
  for (std::uint32_t at = 0; at < kernels; ++at) {
    const bool forward = trace.kernels[at].phase == Phase::forward;
    const auto note = [&](const Access& access) {
      const std::uint32_t tensor = access.tensor.value;
      if (forward)
        last_forward[tensor] = at;
      else if (!first_backward[tensor])
        first_backward[tensor] = at;
    };
    std::ranges::for_each(trace.kernels[at].reads, note);
    std::ranges::for_each(trace.kernels[at].writes, note);
  }
  Plan plan;
  const bool fits = std::ranges::max(problem.lifetimes.live) <= problem.machine.device.memory;
  if (fits && !problem.parameters.is_on("shrink")) return plan;
  std::set<TensorId> absent;
  Bytes away;
  const auto evict = [&](std::uint32_t at, TensorId id) {
    const Tensor& tensor = trace[id];
    const auto used_next = first_backward[id.value];
    const bool writes_it =
        std::ranges::any_of(trace.kernels[at].writes, [&](const Access& write) { return write.tensor == id; });
    // One that the next kernel reads again would come back at once.
    if (tensor.persistent || tensor.bytes < kLeastMovedBytes || writes_it || last_forward[id.value] != at ||
        !used_next || *used_next <= at + 1 || away + tensor.bytes > problem.machine.host_memory() ||
        !absent.insert(id).second)
      return;
    away += tensor.bytes;
    plan.evictions.push_back(
        {.tensor = id, .after = {at}, .to = Tier::host, .delay = {}, .during = true, .awaited_by = next_of(at, trace)});
  };
  const auto has_come = [&](const Access& access) { absent.erase(access.tensor); };
  for (std::uint32_t at = 0; at < kernels; ++at) {
    const Kernel& kernel = trace.kernels[at];
    std::ranges::for_each(kernel.reads, has_come);  // It waits for what it misses.
    std::ranges::for_each(kernel.writes, has_come);
    if (kernel.phase == Phase::forward) {
      for (const Access& read : kernel.reads)
        if (is_convolution(kernel)) evict(at, read.tensor);
      continue;
    }
    for (std::uint32_t next = at + 1; next < kernels && trace.kernels[next].phase != Phase::forward; ++next) {
      bool any = false;
      for (const Access& read : trace.kernels[next].reads)
        if (absent.erase(read.tensor) > 0) {
          any = true;
          plan.prefetches.push_back({.tensor = read.tensor, .at = {at}, .delay = {}, .awaited_by = next_of(at, trace)});
        }
      if (any || is_convolution(trace.kernels[next])) break;
    }
  }
  return plan;
}

}  // namespace spillway
