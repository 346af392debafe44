#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/lifetimes.h"
#include "trace/trace.h"

namespace spillway {

// Which inactive periods need no copy out, because the SSD has the tensor's bytes from an earlier one already. That
// depends on what else is planned: of the periods between two writes to a tensor the first that it spends on the SSD
// stores it for all others. A tensor that nobody writes to has been stored in an iteration before.
//
// Periods are named by their places in Lifetimes::periods. Time grows with the trace's accesses; every call is O(1) but
// plan(), which takes O(1) for each period that it returns, and returns each period twice at most.
class Copies {
 public:
  Copies(const Trace& trace, const Lifetimes& lifetimes);

  // The SSD has the bytes when the period begins, if all is done as planned so far.
  bool is_clean(std::size_t period) const { return run_of(period).first < places_[period].order; }
  // It costs no more writes to spend this period on the SSD than not to, for others that are planned, and it should be
  // spent nowhere else. A period is no reason for itself, though it has been planned.
  bool is_written_anyway(std::size_t period) const {
    const Run& run = run_of(period);
    return run.first != kNone && (run.first != places_[period].order || run.last > run.first);
  }

  // The tensor spends this period on the SSD. Returns the periods that have become cheaper by that.
  std::vector<std::size_t> plan(std::size_t period);

  // The tensor spends this period elsewhere, where no copy is kept: nor is one from here on to the next write.
  void plan_elsewhere(std::size_t period);

  // Whether the copy of a tensor that comes back from this planned period will be needed.
  bool is_worth_keeping(std::size_t period) const;

 private:
  static constexpr std::int64_t kNone = INT64_MAX;
  // The periods between two writes, in their order.
  struct Run {
    std::vector<std::size_t> periods;
    std::int64_t first = kNone;  // of those that are planned; before all of them if nobody ever writes
    std::int64_t last = -1;
    bool has_copies = true;
  };
  struct Place {
    std::size_t run = 0;
    std::int64_t order = 0;  // in the run
  };
  const Run& run_of(std::size_t period) const { return runs_[places_[period].run]; }

  std::vector<Run> runs_;
  std::vector<Place> places_;  // by period
};

}  // namespace spillway
