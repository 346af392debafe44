#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "hook/recorder/events.h"
#include "hook/session/hook_side.h"

namespace spillway {

// Reports iterations as they end: from one optimizer step to the next; steps of several optimizers, each once, make
// one. The ends of backward passes count until the first optimizer shows up, and then never did.
class Iterations {
 public:
  explicit Iterations(Session& session) : session_(session) {}

  // The first operator that training could consist of: what is before it is setting up.
  void training_starts(Nanos at, std::uint64_t faults) {
    if (started_) return;
    started_ = true;
    first_ = begin_ = end_ = {at, faults};
  }

  // `written`, by the step, tells optimizers apart.
  void step_ended(Nanos at, std::uint64_t faults, const std::vector<StorageId>& written) {
    training_starts(at, faults);
    if (steps_.empty()) {
      forget_iterations(session_);
      begin_ = end_ = first_;
    }
    const auto is_same = [&](const std::vector<StorageId>& step) {
      return have_one_in_common(step, written) || (step.empty() && written.empty());
    };
    if (std::ranges::any_of(steps_, is_same)) {
      steps_.clear();
      begin_ = end_;
    }
    const bool joins = !steps_.empty();
    steps_.push_back(written);
    end_ = {at, faults};
    const std::uint64_t duration = excess(end_.at, begin_.at).value;
    joins ? replace_iteration(session_, duration, faults - begin_.faults)
          : add_iteration(session_, duration, faults - begin_.faults);
  }
  void backward_ended(Nanos at, std::uint64_t faults) {
    training_starts(at, faults);
    add_iteration(session_, excess(at, end_.at).value, faults - end_.faults);
    end_ = {at, faults};
  }
  // What we did ourselves since the last end is no part of an iteration.
  void leave_out(Nanos time) {
    begin_.at += time;
    end_.at += time;
  }

 private:
  struct Moment {
    Nanos at;
    std::uint64_t faults = 0;
  };

  Session& session_;
  bool started_ = false;
  Moment first_, begin_, end_;                 // of training; of the iteration under way; of the last one
  std::vector<std::vector<StorageId>> steps_;  // what those of the optimizers that have made a step in it wrote
};

}  // namespace spillway
