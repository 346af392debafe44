#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "hook/session/hook_side.h"

namespace spillway {

// Reports iterations as they end. The ends of backward passes count only if no optimizer step ever shows up, which the
// end of the process decides.
class Iterations {
 public:
  explicit Iterations(Session& session) : session_(session) {}

  // The first operator that training could consist of: what is before it is setting up.
  void training_starts(Nanos at) {
    if (!since_) since_ = at;
  }

  void step_ended(Nanos at, std::uint64_t faults) {
    backwards_.clear();
    end(at, faults);
  }
  void backward_ended(Nanos at, std::uint64_t faults) {
    if (backwards_.size() < kMaxIterations) backwards_.push_back({at, faults});
  }
  void finish() {
    for (const Backward& backward : backwards_) end(backward.at, backward.faults);
    backwards_.clear();
  }

 private:
  struct Backward {
    Nanos at;
    std::uint64_t faults;
  };
  void end(Nanos at, std::uint64_t faults) {
    add_iteration(session_, excess(at, since_.value_or(at)).value, faults - faults_before_);
    since_ = at;
    faults_before_ = faults;
  }

  Session& session_;
  std::optional<Nanos> since_;
  std::uint64_t faults_before_ = 0;
  std::vector<Backward> backwards_;
};

}  // namespace spillway
