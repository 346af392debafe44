#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <unordered_map>

#include "base/ids.h"

namespace spillway {

// DeepUM's execution ID correlation table (section 4.2, figure 6): which kernel came after another one and the three
// before that. It keeps all that it has seen; of two that came after the same four, the later one. A plain value.
class ExecutionTable {
 public:
  using Four = std::array<ExecutionId, 4>;  // the current one last

  void follows(const Four& four, ExecutionId next) { next_[four] = next; }
  std::optional<ExecutionId> next(const Four& four) const {
    const auto known = next_.find(four);
    return known != next_.end() ? std::optional(known->second) : std::nullopt;
  }
  void clear() { next_.clear(); }

 private:
  struct Hash {
    std::size_t operator()(const Four& four) const noexcept {
      std::size_t hash = 0;
      for (const ExecutionId id : four) hash = hash * 0x9e3779b97f4a7c15 + std::hash<ExecutionId>{}(id);
      return hash;
    }
  };
  std::unordered_map<Four, ExecutionId, Hash> next_;
};

}  // namespace spillway
