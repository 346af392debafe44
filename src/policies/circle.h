#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/tier.h"
#include "plan/plan.h"
#include "policies/copies.h"
#include "policies/policies.h"
#include "policies/pressure.h"

namespace spillway {

// A stretch of the circular iteration: `count` kernels from `begin` on.
struct Stretch {
  std::uint32_t begin = 0, count = 0;
};

// An inactive period that its tensor spends below the device. Places are kernels counted from the period's start.
struct Absence {
  std::size_t period = 0;  // in Lifetimes::periods
  Tier tier = Tier::ssd;
  std::uint32_t left = 0;     // the eviction has ended when this kernel has
  std::uint32_t returns = 0;  // the prefetch starts with this kernel; meaningless in a last period
};

// The iteration as a circle, on which periods may go round the end: what planners ask of it, whatever they choose.
class Circle {
 public:
  explicit Circle(const Problem& problem);

  std::uint32_t kernels() const { return kernels_; }
  std::size_t periods() const { return lifetimes_.periods.size(); }
  const InactivePeriod& period(std::size_t index) const { return lifetimes_.periods[index]; }
  Bytes bytes(std::size_t index) const { return trace_[period(index).tensor].bytes; }
  std::uint32_t length(std::size_t index) const;
  // A period that can be planned: its tensor is not packed with others, at least one kernel passes, and what returns,
  // if it does, is the same tensor that left.
  bool plannable(std::size_t index) const;

  // The kernels of a period from one place (inclusive) to another (exclusive).
  Stretch stretch(std::size_t index, std::uint32_t from, std::uint32_t to) const;
  // Of two periods of one tensor: the kernels from the one that ends the first to the one that ends the second, without
  // that; and likewise those after each begins.
  Stretch from_end_to_end(std::size_t first, std::size_t second) const {
    return between(period(first).before.value, period(second).before.value);
  }
  Stretch from_begin_to_begin(std::size_t first, std::size_t second) const {
    return between(period(first).after.value + 1, period(second).after.value + 1);
  }
  template <class F>
  void both_parts(Stretch stretch, F&& call) const {
    const std::uint32_t first = std::min(stretch.count, kernels_ - stretch.begin);
    call(stretch.begin, stretch.begin + first);
    if (first < stretch.count) call(0u, stretch.count - first);
  }
  void add(Pressure& pressure, Stretch where, std::int64_t amount) const;
  bool has_room(const Pressure& tier, Stretch where, Bytes size) const;

  // By kernel, the bytes alive over what the device holds; negative where there is room.
  std::vector<std::int64_t> excess() const;
  std::vector<std::int64_t> empty(Bytes capacity) const;  // a tier that holds nothing

  // In the order of their latest places, each moves its return back as long as the whole tensor fits (G10 section 4.4).
  // Returns that order.
  std::vector<std::size_t> prefetch_eagerly(std::span<Absence> absences, Pressure& excess) const;
  // `copies`: null if none are kept.
  Plan plan(std::span<const Absence> absences, std::span<const std::size_t> prefetch_order, const Copies* copies) const;

 private:
  Stretch between(std::uint32_t begin, std::uint32_t end) const {
    return {begin % kernels_, (end + kernels_ - begin) % kernels_};
  }

  const Trace& trace_;
  const Lifetimes& lifetimes_;
  Bytes device_;
  std::uint32_t kernels_;
};

}  // namespace spillway
