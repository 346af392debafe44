#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/check.h"
#include "base/units.h"
#include "recorder/recorder.h"

namespace spillway {

struct TimedIteration {
  Nanos duration, waited;  // of it, for memory
};

// When the latest optimizer steps ended, and how long the run had waited for memory by then: tells what an iteration
// took, whatever came before it.
class StepEnds {
 public:
  void add(Nanos at, Nanos waited) {
    CHECK(ends_.empty() || at >= ends_.back().at);
    ends_.push_back({at, waited});
    if (ends_.size() > Recorder::kMostPeriods + 1) ends_.pop_front();
  }
  // What comes is done in another way than what was.
  void begin_anew() {
    if (!ends_.empty()) ends_ = {ends_.back()};
  }
  // The latest so many steps; nothing if they began before what was begun anew.
  std::optional<TimedIteration> iteration(std::uint64_t steps) const {
    if (ends_.size() < steps + 1) return std::nullopt;
    const End& end = ends_.back();
    const End& begin = ends_[ends_.size() - 1 - steps];
    return TimedIteration{.duration = excess(end.at, begin.at), .waited = excess(end.waited, begin.waited)};
  }

 private:
  struct End {
    Nanos at, waited;
  };
  std::deque<End> ends_;
};

}  // namespace spillway
