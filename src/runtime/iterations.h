#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "journal/iteration_ended.h"
#include "recorder/events.h"
#include "runtime/run_figures.h"

namespace spillway {

// An iteration that has ended, as it seems by now.
struct CountedIteration {
  IterationEnded ended;
  IterationFigures figures;  // all of it
};

// Counts iterations as they end: from one optimizer step to the next; steps of several optimizers, each once, make
// one. The ends of backward passes count until the first optimizer shows up, and then never did.
class Iterations {
 public:
  bool training_has_started() const { return started_; }
  // The first operator that training could consist of: what is before it is setting up.
  void training_starts(Nanos at, const MemoryFigures& memory) {
    if (started_) return;
    started_ = true;
    first_ = begin_ = end_ = {at, memory, kernels_};
  }

  // `written`, by the step, tells optimizers apart.
  CountedIteration step_ended(Nanos at, const MemoryFigures& memory, const std::vector<Updated>& written) {
    training_starts(at, memory);
    const bool is_first = steps_.empty();
    if (is_first) begin_ = end_ = first_;
    const auto is_same = [&](const std::vector<Updated>& step) { return are_of_one_optimizer(step, written); };
    // Where each optimizer makes one step and is thrown away, none is ever the same again.
    if (steps_.size() == kMostSteps || std::ranges::any_of(steps_, is_same)) {
      steps_.clear();
      begin_ = end_;
    }
    using enum IterationEnded::Place;
    const auto place = is_first ? first : steps_.empty() ? next : last;
    steps_.push_back(written);
    end_ = {at, memory, kernels_};
    return since(begin_, place);
  }
  CountedIteration backward_ended(Nanos at, const MemoryFigures& memory) {
    CHECK(steps_.empty());
    training_starts(at, memory);
    return since(std::exchange(end_, {at, memory, kernels_}), IterationEnded::Place::next);
  }

  // From the next iteration on: a plan of so many kernels that use or make managed memory, for as many steps; 0: none.
  void follows(std::uint64_t kernels, std::uint64_t steps) { plan_ = {kernels, steps}; }
  // One of these, of the training.
  void kernel_ended(bool planned) {
    ++kernels_.all;
    kernels_.planned += planned;
  }

 private:
  static constexpr std::size_t kMostSteps = 4096;  // more than there are parameters with an optimizer of their own

  struct Kernels {
    std::uint64_t all = 0, planned = 0;
  };
  struct Moment {
    Nanos at;
    MemoryFigures memory;  // so far
    Kernels kernels;       // so far
  };
  // Most of its kernels were the plan's, or it had most of the plan's, and much else (an evaluation).
  bool is_planned(Kernels kernels, std::uint64_t steps) const {
    const bool has_most = kernels.planned > 0 && 2 * kernels.planned * plan_.steps > plan_.kernels * steps;
    return 2 * kernels.planned > kernels.all || has_most;
  }
  CountedIteration since(const Moment& begin, IterationEnded::Place place) const {
    const std::uint64_t steps = std::max<std::uint64_t>(1, steps_.size());
    const Kernels kernels{.all = end_.kernels.all - begin.kernels.all,
                          .planned = end_.kernels.planned - begin.kernels.planned};
    const MemoryFigures &before = begin.memory, &now = end_.memory;
    CHECK(end_.kernels.all >= begin.kernels.all && end_.kernels.planned >= begin.kernels.planned);
    CHECK(now.faults >= before.faults);
    IterationFigures figures{.duration = excess(end_.at, begin.at),
                             .faults = now.faults - before.faults,
                             .waited = excess(now.stall, before.stall),
                             .kernels = kernels.all,
                             .planned_kernels = kernels.planned,
                             .planned = is_planned(kernels, steps)};
    for (const Tier below : {Tier::host, Tier::ssd}) {
      figures.in += now.moved(below, Tier::device) - before.moved(below, Tier::device);
      figures.out += now.moved(Tier::device, below) - before.moved(Tier::device, below);
    }
    return {{place, end_.at}, figures};
  }

  struct Plan {
    std::uint64_t kernels = 0, steps = 0;
  };

  Kernels kernels_;
  Plan plan_;
  bool started_ = false;
  Moment first_, begin_, end_;               // of training; of the iteration under way; of the last one
  std::vector<std::vector<Updated>> steps_;  // what those of the optimizers that have made a step in it wrote
};

}  // namespace spillway
