#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "analysis/lifetimes.h"
#include "trace/trace.h"

namespace spillway {

// Which kernels make a tensor's bytes again.
class ReplayChains {
 public:
  ReplayChains(const Trace& trace, const Lifetimes& lifetimes);

  // The kernels to run before `before`, in their order, so that the tensor's bytes are there again; what they read that
  // `is_away`, or dead, is made again, too. Nothing: one of them cannot be replayed, or finds other bytes by now.
  std::optional<std::vector<KernelId>> chain(TensorId tensor, KernelId before,
                                             const std::function<bool(TensorId)>& is_away) const;

 private:
  bool add(TensorId tensor, KernelId before, const std::function<bool(TensorId)>& is_away,
           std::vector<KernelId>& kernels, std::size_t depth) const;

  const Trace& trace_;
  const Lifetimes& lifetimes_;
  std::vector<std::vector<KernelId>> writers_;  // by tensor, ascending
};

Nanos time_of(const std::vector<KernelId>& kernels, const Trace& trace);

}  // namespace spillway
