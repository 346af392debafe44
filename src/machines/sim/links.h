#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/units.h"
#include "executor/machine.h"

namespace spillway {

// Rates in bytes per second; an SSD's are those of all drives together.
struct LinkRates {
  double to_device = 0, from_device = 0;
  double ssd_read = 0, ssd_write = 0;
  Nanos host_latency{}, ssd_read_latency{}, ssd_write_latency{};
  // A page fault handles `fault_bytes` and takes `fault_cost`, so faults move at most fault_bytes / fault_cost.
  Nanos fault_cost{};
  Bytes fault_bytes{64 << 10};
};

// Moves under way between the tiers, as fluids. Each of the four ways serves one move of each urgency at a time, first
// come, first served. What is in service shares
//   the device's link in, the device's link out, the SSDs' read rate, the SSDs' write rate
// by urgency: faults take what they can use, needs what is left, plans the rest. Within an urgency the ways share
// max-min fairly: all get the same until a limit is reached, and what one cannot use the others may. The latency is
// paid once per move before its first byte; a move that serves faults pays it for each block, since they fault one by
// one.
class Links {
 public:
  explicit Links(const LinkRates& rates) : rates_(rates) {}

  void start(const Move& move, Bytes bytes);
  std::optional<Move> cancel(MoveId move);  // the move, if it was under way

  bool is_busy() const;  // something is under way
  // When something happens next if nothing is started or cancelled until then: a latency is over or a move has ended.
  std::optional<Nanos> next_change();
  // Lets time pass up to `to`, which must not lie behind next_change(); appends the moves that have ended.
  void advance(Nanos to, std::vector<Move>& ended);  // `ended` must be empty

 private:
  struct Job {
    Move move;
    double latency_ns = 0;  // still to wait
    double bytes = 0;       // still to move
    double limit = 0;       // bytes per nanosecond at most
    double rate = 0;        // bytes per nanosecond now
  };
  static constexpr std::size_t kUrgencies = 3;
  struct Way {
    Tier from, to;
    std::array<std::deque<Job>, kUrgencies> queues;
  };
  enum Resource : std::uint8_t { into_device, out_of_device, ssd_reads, ssd_writes };
  static constexpr std::size_t kResources = 4;
  struct Flow {
    Job* job;
    std::array<bool, kResources> uses;
  };

  Way& way(Tier from, Tier to);
  template <class F>
  void for_each_in_service(F&& call) {
    for (Way& candidate : ways_)
      for (std::deque<Job>& queue : candidate.queues)
        if (!queue.empty()) call(queue.front());
  }
  void share();
  static void fill(std::vector<Flow> flows, std::array<double, kResources>& left);
  double step_ns();  // until the next change by itself: a latency is over or a move has ended

  LinkRates rates_;
  std::vector<Way> ways_{{Tier::device, Tier::host, {}},
                         {Tier::device, Tier::ssd, {}},
                         {Tier::host, Tier::device, {}},
                         {Tier::ssd, Tier::device, {}}};
  Nanos now_;
  bool shared_ = true;  // the rates are those of the moves in service
};

}  // namespace spillway
