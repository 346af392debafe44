#include <algorithm>
#include <optional>
#include <vector>

#include "plan/validate.h"
#include "policies/policies.h"

namespace spillway {
namespace {

struct Offload {
  TensorId tensor;
  std::uint32_t first = 0, last_forward = 0, first_backward = 0;
};

}  // namespace

// FlashNeuron, as G10 section 7.1 compares with it: tensors that the forward pass makes and the backward pass uses go
// to the SSD, whole, by direct storage; those that are used first are chosen, until the rest fits. The backward pass
// begins once all have left; after each of its kernels come those that are used next, as far as they fit beside the
// largest working set. Nothing is compressed.
Plan plan_flashneuron(const Problem& problem) {
  const Trace& trace = problem.trace;
  const auto kernels = static_cast<std::uint32_t>(trace.kernels.size());
  std::vector<Offload> of(trace.tensors.size());
  std::vector<bool> seen(trace.tensors.size()), is_made(trace.tensors.size()), has_backward(trace.tensors.size());
  std::optional<std::uint32_t> backward;
  Bytes persistent, working_set;
  for (const Tensor& tensor : trace.tensors)
    if (tensor.persistent) persistent += tensor.bytes;
  std::vector<std::uint32_t> counted(trace.tensors.size(), UINT32_MAX);
  for (std::uint32_t at = 0; at < kernels; ++at) {
    const Kernel& kernel = trace.kernels[at];
    const bool forward = kernel.phase == Phase::forward;
    if (!forward && !backward) backward = at;
    Bytes used;
    const auto note = [&](const Access& access, bool writes) {
      const std::uint32_t tensor = access.tensor.value;
      if (counted[tensor] != at && !trace.tensors[tensor].persistent) used += trace.tensors[tensor].bytes;
      counted[tensor] = at;
      if (!seen[tensor]) of[tensor] = {.tensor = {tensor}, .first = at, .last_forward = at};
      if (!seen[tensor] && forward && writes) is_made[tensor] = true;
      seen[tensor] = true;
      if (forward && !has_backward[tensor]) of[tensor].last_forward = at;
      if (!forward && !has_backward[tensor]) of[tensor].first_backward = at;
      if (!forward) has_backward[tensor] = true;
    };
    for (const Access& read : kernel.reads) note(read, false);
    for (const Access& write : kernel.writes) note(write, true);
    working_set = std::max(working_set, used);
  }
  std::vector<Offload> candidates;
  Bytes unselected;
  for (std::uint32_t tensor = 0; tensor < of.size(); ++tensor) {
    if (!seen[tensor] || trace.tensors[tensor].persistent || !is_made[tensor] || !has_backward[tensor]) continue;
    unselected += trace.tensors[tensor].bytes;
    const bool is_away = of[tensor].first_backward > of[tensor].last_forward + 1;
    if (is_away && trace.tensors[tensor].bytes >= kLeastMovedBytes && !trace.tensors[tensor].carried_from)
      candidates.push_back(of[tensor]);
  }
  std::ranges::sort(candidates, {}, [](const Offload& one) { return std::pair(one.first, one.tensor); });
  const Bytes device = problem.machine.device.memory;
  std::vector<Offload> selected;
  for (const Offload& one : candidates) {
    if (unselected + persistent + working_set <= device) break;
    selected.push_back(one);
    unselected -= trace[one.tensor].bytes;
  }
  Plan plan;
  plan.shortfall.device = excess(unselected + persistent + working_set, device);
  Bytes away;
  for (const Offload& one : selected) away += trace[one.tensor].bytes;
  plan.shortfall.ssd = excess(away, problem.machine.ssd_capacity());
  // Each phase of its own, where forward and backward take turns: the next kernel that is not of a forward pass.
  std::vector<std::uint32_t> backward_after(kernels, kernels);
  for (std::uint32_t at = kernels; at-- > 0;) {
    if (trace.kernels[at].phase != Phase::forward)
      backward_after[at] = at;
    else if (at + 1 < kernels)
      backward_after[at] = backward_after[at + 1];
  }
  if (selected.empty() || !backward || plan.shortfall != PerTier<Bytes>{}) return plan;
  std::ranges::sort(selected, {}, [](const Offload& one) { return std::pair(one.last_forward, one.tensor); });
  for (const Offload& one : selected)
    plan.evictions.push_back({.tensor = one.tensor,
                              .after = {one.last_forward},
                              .to = Tier::ssd,
                              .delay = {},
                              .during = false,
                              .awaited_by = KernelId{backward_after[one.last_forward]}});
  std::vector<Bytes> leaves(kernels);  // by the kernel before which all of a forward pass have left
  for (const Offload& one : selected)
    if (const std::uint32_t at = backward_after[one.last_forward]; at < kernels) leaves[at] += trace[one.tensor].bytes;
  std::ranges::sort(selected, {}, [](const Offload& one) { return std::pair(one.first_backward, one.tensor); });
  std::size_t next = 0;
  Bytes out;  // what has left and neither came nor was needed
  for (std::uint32_t at = *backward; at + 1 < kernels && next < selected.size(); ++at) {
    out += leaves[at];
    if (trace.kernels[at].phase == Phase::forward) continue;
    for (; next < selected.size() && selected[next].first_backward <= at; ++next)
      out -= trace[selected[next].tensor].bytes;
    Bytes there = excess(problem.lifetimes.live[at], out);  // once this kernel has ended
    for (const TensorId tensor : problem.lifetimes.deaths[at]) there = excess(there, trace[tensor].bytes);
    for (; next < selected.size() && backward_after[selected[next].last_forward] <= at &&
           selected[next].first_backward > at + 1;
         ++next) {
      const Bytes bytes = trace[selected[next].tensor].bytes;
      there += bytes;
      if (there + working_set > device) break;
      out -= bytes;
      plan.prefetches.push_back({.tensor = selected[next].tensor, .at = {at + 1}, .delay = {}, .awaited_by = {}});
    }
  }
  return plan;
}

}  // namespace spillway
