#include "policies/replay_chain.h"

#include <algorithm>

namespace spillway {
namespace {

constexpr std::size_t kLongest = 64;

}  // namespace

ReplayChains::ReplayChains(const Trace& trace, const Lifetimes& lifetimes)
    : trace_(trace), lifetimes_(lifetimes), writers_(trace.tensors.size()) {
  for (std::uint32_t at = 0; at < trace.kernels.size(); ++at)
    for (const Access& write : trace.kernels[at].writes) {
      auto& writers = writers_[write.tensor.value];
      if (writers.empty() || writers.back() != KernelId{at}) writers.push_back({at});
    }
}

std::optional<std::vector<KernelId>> ReplayChains::chain(TensorId tensor, KernelId before,
                                                         const std::function<bool(TensorId)>& is_away) const {
  std::vector<KernelId> kernels;
  if (!add(tensor, before, is_away, kernels, 0)) return std::nullopt;
  return kernels;
}

// Sources first.
bool ReplayChains::add(TensorId tensor, KernelId before, const std::function<bool(TensorId)>& is_away,
                       std::vector<KernelId>& kernels, std::size_t depth) const {
  const Lifetime& life = lifetimes_.tensors[tensor.value];
  if (life.alive_at_start || life.alive_at_end || trace_[tensor].persistent || kernels.size() >= kLongest ||
      depth >= kLongest)
    return false;
  // One that is made in several steps would need all of them.
  const auto& writers = writers_[tensor.value];
  if (writers.size() != 1 || life.birth != writers.front() || writers.front() >= before) return false;
  const KernelId producer = writers.front();
  const Kernel& kernel = trace_[producer];
  if (!kernel.replay || kernel.replay->leaves_out(tensor)) return false;
  for (const Access& read : kernel.reads) {
    if (kernel.replay->leaves_out(read.tensor)) continue;
    const Lifetime& source = lifetimes_.tensors[read.tensor.value];
    const auto& changes = writers_[read.tensor.value];
    const auto change = std::ranges::lower_bound(changes, producer);
    if (change != changes.end() && *change < before) return false;
    const bool is_dead = source.is_dead_before(before);
    if (!is_dead && !is_away(read.tensor)) continue;
    const auto makes_it = [&](KernelId known) {
      return std::ranges::find(changes, known) != changes.end() && !trace_[known].replay->leaves_out(read.tensor);
    };
    if (std::ranges::none_of(kernels, makes_it) && !add(read.tensor, before, is_away, kernels, depth + 1)) return false;
  }
  kernels.push_back(producer);
  return true;
}

Nanos time_of(const std::vector<KernelId>& kernels, const Trace& trace) {
  Nanos sum;
  for (const KernelId kernel : kernels) sum += trace[kernel].duration;
  return sum;
}

}  // namespace spillway
