#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/lifetimes.h"
#include "memory/tier.h"
#include "trace/trace.h"

namespace spillway {

// Which inactive periods need no copy out, because a tier below has the tensor's bytes from an earlier one already.
// That depends on what else is planned: of the periods between two writes to a tensor the first that it spends on a
// tier that keeps copies stores it there for all others. A tensor that nobody writes to has been stored in an iteration
// before. The SSD keeps copies, and host memory if the machine says so.
//
// Periods are named by their places in Lifetimes::periods. Time grows with the trace's accesses; every call is O(1) but
// plan(), which takes O(1) for each period that it returns, and returns each period twice at most.
class Copies {
 public:
  Copies(const Trace& trace, const Lifetimes& lifetimes, bool host_keeps);

  bool keeps(Tier tier) const { return tier == Tier::ssd || host_keeps_; }
  // The tier has the bytes when the period begins, if all is done as planned so far.
  bool is_clean(std::size_t period, Tier tier) const {
    return may_have_copy(period, tier) && run_of(period).first < places_[period].order;
  }
  // It costs no more writes to spend this period on the tier than not to, for others that are planned. A period is no
  // reason for itself, though it has been planned.
  bool is_written_anyway(std::size_t period, Tier tier) const {
    return may_have_copy(period, tier) && is_written_anyway(period);
  }
  // The same, of any tier.
  bool is_written_anyway(std::size_t period) const {
    const Run& run = run_of(period);
    return run.first != kNone && (run.first != places_[period].order || run.last > run.first);
  }
  // The period should be spent nowhere else, for the copy is there. Nothing: wherever there is room.
  std::optional<Tier> only_tier(std::size_t period) const;

  // Of a period that would have to be copied out: the one before it, since the tensor was written last. Spent on a tier
  // that keeps copies, that one stores the tensor ahead.
  std::optional<std::size_t> ahead_of(std::size_t period) const;

  // The periods around one that is not planned, in which a copy is there: it stays from the end of `before`, and until
  // the beginning of `after`. `always`: in the whole iteration. `is_held`: all of it was there before.
  struct Held {
    std::optional<std::size_t> before = {}, after = {};
    bool always = false, is_held = false;
  };
  Held held_with(std::size_t period) const;

  // The tensor spends this period on that tier. If that keeps no copy, none is from here on to the next write. Returns
  // the periods that have become cheaper by that.
  std::vector<std::size_t> plan(std::size_t period, Tier tier);

  // Whether the copy of a tensor that comes back from this planned period will be needed.
  bool is_worth_keeping(std::size_t period, Tier tier) const;

 private:
  static constexpr std::int64_t kNone = INT64_MAX;
  // The periods between two writes, in their order.
  struct Run {
    std::vector<std::size_t> periods;
    std::int64_t first = kNone;  // of those that are planned; before all of them if nobody ever writes
    std::int64_t last = -1;
    std::int64_t earliest = kNone;  // that is planned, whoever writes
    std::optional<Tier> tier;       // that has the copy; nothing if none is planned
    bool has_copies = true;
  };
  struct Place {
    std::size_t run = 0;
    std::int64_t order = 0;  // in the run
  };
  const Run& run_of(std::size_t period) const { return runs_[places_[period].run]; }
  bool may_have_copy(std::size_t period, Tier tier) const {
    return keeps(tier) && run_of(period).tier.value_or(tier) == tier;
  }

  bool host_keeps_;
  std::vector<Run> runs_;
  std::vector<Place> places_;  // by period
};

}  // namespace spillway
