#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/machine_model.h"
#include "policies/circle.h"
#include "policies/copies.h"
#include "policies/policies.h"
#include "policies/pressure.h"
#include "policies/traffic.h"

namespace spillway {

// The tiers below the device in an iteration: what a plan has booked on them so far, and on the links to them.
class Below {
 public:
  // Where and when a tensor could be away. Places are kernels counted from the start of its period.
  struct Window {
    Traffic::Lane lane = Traffic::Lane::ssd;
    bool clean = false;         // the tier has the bytes already
    std::uint32_t left = 0;     // the eviction ends in this kernel
    std::uint32_t returns = 0;  // the prefetch starts in this kernel, at the latest safe time
    Tier tier() const { return lane == Traffic::Lane::host ? Tier::host : Tier::ssd; }
  };

  // `slots`: the nanoseconds of each kernel with the gap before it, and the wait after it that the plan itself causes.
  Below(const Problem& problem, const Circle& circle, std::span<const std::uint64_t> slots);

  // SSD first; it counts as full when its write or its read would miss the window that an idle one would allow.
  // Nothing if there is no room, or no time. `copies`: null if none are kept.
  std::optional<Window> place(std::size_t period, const Copies* copies, bool use_host) const;
  // Not to be copied out, since the tier gets the bytes in the period `before`, for which there is room. Nothing if
  // there is none from then on, or no time.
  std::optional<Window> place_stored(std::size_t before, std::size_t period, Tier tier, const Copies& copies) const;
  // For what is away in this period, and in host memory for the copy that is there before and after it.
  bool has_room(Tier tier, std::size_t period, const Copies* copies) const;
  // Before `copies` hears of it.
  void book(std::size_t period, const Window& window, const Copies* copies);

  // How long kernels wait for what the links could not take away in time: before each kernel at which the excess grows,
  // as long as the growth takes on its way out. The wait is added to the slot before that kernel.
  std::vector<std::uint64_t> with_waits(std::vector<std::uint64_t> slots, const Pressure& excess, bool use_host) const;

 private:
  std::optional<Window> window(std::size_t period, Traffic::Lane lane, bool idle, bool clean = false) const;
  Stretch takes_room(Tier tier, std::size_t period, const Copies* copies) const;

  const Circle& circle_;
  const MachineModel& machine_;
  Pressure host_, ssd_;  // planned bytes over the tiers' capacities
  Traffic out_, in_;
};

// The nanoseconds of each kernel with the gap before it.
std::vector<std::uint64_t> slots_of(const Trace& trace);

}  // namespace spillway
