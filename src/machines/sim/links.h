#pragma once

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

// Moves under way between the tiers, as fluids. Each of the six ways serves one move at a time: the most urgent, then
// the first to come; a more urgent one takes over at once and the other goes on afterwards. Ways that are busy share
//   the device's link in, the device's link out, the SSDs' read rate, the SSDs' write rate
// max-min fairly: all get the same until a limit is reached, and what one cannot use the others may. The latency is paid
// once per move before its first byte; a move that serves faults pays it for each block, since they fault one by one.
class Links {
 public:
  explicit Links(const LinkRates& rates) : rates_(rates) {}

  void start(const Move& move, Bytes bytes);
  std::optional<Move> cancel(MoveId move);  // the move, if it was under way

  // When something happens next if nothing is started or cancelled until then: a latency is over or a move has ended.
  std::optional<Nanos> next_change();
  // Lets time pass up to `to`, which must not lie behind next_change(); appends the moves that have ended.
  void advance(Nanos to, std::vector<Move>& ended);

 private:
  struct Job {
    Move move;
    double latency_ns = 0;  // still to wait
    double bytes = 0;       // still to move
    double limit = 0;       // bytes per nanosecond at most
    double rate = 0;        // bytes per nanosecond now
  };
  struct Way {
    Tier from, to;
    std::deque<Job> queues[3];  // by urgency
    Job* serving();
  };

  Way& way(Tier from, Tier to);
  void share();
  double step_ns();  // until the next change by itself: a latency is over or a move has ended

  LinkRates rates_;
  std::vector<Way> ways_{{Tier::device, Tier::host, {}}, {Tier::device, Tier::ssd, {}}, {Tier::host, Tier::device, {}},
                         {Tier::ssd, Tier::device, {}},  {Tier::host, Tier::ssd, {}},   {Tier::ssd, Tier::host, {}}};
  Nanos now_;
  bool shared_ = true;  // the rates are those of the moves in service
};

}  // namespace spillway
