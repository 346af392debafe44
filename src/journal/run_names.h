#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "executor/machine.h"
#include "journal/record.h"
#include "trace/trace.h"

namespace spillway {

// A journal knows kernels and tensors by labels, which are the same in every iteration, and has the names of kernels.
// The trace of the iteration knows their phases, and its tensors: where a plan is followed whose kernels are those of
// the trace, each kernel tells its place there, so its label and those of its tensors are known, for all of the run.
class RunNames {
 public:
  // The trace outlives it; null: there is none.
  explicit RunNames(const Trace* trace);

  void take(const Record& record);

  // Empty: nobody has said.
  std::string_view name(ExecutionId execution) const;
  // What plays the part in the trace; null: nothing is known to.
  const Kernel* kernel(ExecutionId execution) const;
  const Tensor* tensor(TensorLabel label) const;
  // Some plan was for an iteration of as many kernels, and nothing said that it is another one.
  bool knows_tensors() const { return !is_another_ && !kernels_.empty(); }

 private:
  struct Used {                             // by a kernel, each once, in order
    std::vector<TensorId> read, written{};  // those that are only read; the others, but for what it makes
  };
  void take(const KernelReady& ready);

  const Trace* trace_;
  std::vector<Used> used_;  // by kernel
  std::shared_ptr<const FollowedPlan> plan_;
  std::unordered_map<ExecutionId, std::string> names_;
  std::unordered_map<ExecutionId, KernelId> kernels_;
  std::unordered_map<TensorLabel, TensorId> tensors_;
  bool is_another_ = false;  // one label stood for kernels of two names
};

}  // namespace spillway
