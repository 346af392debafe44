#include "analysis/changes.h"

#include <algorithm>

namespace spillway {

std::vector<std::vector<KernelId>> changes_of(const Trace& trace, const Lifetimes& lifetimes) {
  std::vector<std::vector<KernelId>> changes(trace.tensors.size());
  for (std::uint32_t kernel = 0; kernel < trace.kernels.size(); ++kernel)
    for (const Access& access : trace.kernels[kernel].writes)
      if (auto& of_tensor = changes[access.tensor.value]; of_tensor.empty() || of_tensor.back().value != kernel)
        of_tensor.push_back({kernel});
  for (std::uint32_t tensor = 0; tensor < trace.tensors.size(); ++tensor) {
    const Lifetime& life = lifetimes.tensors[tensor];
    const bool is_born = !life.alive_at_start || trace.tensors[tensor].carried_from == TensorId{tensor};
    auto& of_tensor = changes[tensor];
    if (is_born && !life.uses.empty() && !std::ranges::binary_search(of_tensor, life.birth))
      of_tensor.insert(std::ranges::lower_bound(of_tensor, life.birth), life.birth);
  }
  return changes;
}

}  // namespace spillway
