#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/units.h"
#include "executor/machine.h"

namespace spillway {

// Rates in bytes per second; an SSD's are those of all drives together.
struct LinkRates {
  double to_device = 0, from_device = 0;
  double ssd_read = 0, ssd_write = 0;
  Nanos host_latency{}, ssd_read_latency{}, ssd_write_latency{};
};

// What a move is to the links.
struct Load {
  Bytes bytes;
  Nanos least{};  // it takes so long for its bytes, however fast the links are: page faults are handled meanwhile
  std::uint32_t latencies = 1;
};

// Moves under way between the tiers, as fluids. Each of the four ways serves one move of each urgency at a time, first
// come, first served. What is in service shares
//   the device's link in, the device's link out, the SSDs' read rate, the SSDs' write rate, the flash's time
// by urgency: faults take what they can use, needs what is left, plans the rest. Within an urgency the ways share
// max-min fairly: all get the same rate until a limit is reached, and what one cannot use the others may. Latencies are
// paid before a move's first byte.
class Links {
 public:
  // Nanoseconds that flash takes for a move from or to the SSD, asked when its turn has come.
  using FlashTime = std::function<double(const Move&)>;

  explicit Links(const LinkRates& rates, FlashTime flash_time = nullptr)
      : rates_(rates), flash_time_(std::move(flash_time)) {}

  void start(const Move& move, Load load);
  std::optional<Move> cancel(MoveId move);  // the move, if it was under way

  bool is_busy() const { return under_way_ > 0; }  // something is under way
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
    double flash = 0;       // nanoseconds of it for each byte
    bool begun = false;
  };
  static constexpr std::size_t kUrgencies = 3;
  struct Way {
    Tier from, to;
    std::array<std::deque<Job>, kUrgencies> queues;
  };
  enum Resource : std::uint8_t { into_device, out_of_device, ssd_reads, ssd_writes, flash };
  static constexpr std::size_t kResources = 5;
  struct Flow {
    Job* job;
    std::array<double, kResources> uses;  // of each resource, for a byte
  };

  Way& way(Tier from, Tier to);
  void share();
  static void fill(std::span<Flow> flows, std::array<double, kResources>& left);
  double step_ns();  // until the next change by itself: a latency is over or a move has ended

  LinkRates rates_;
  FlashTime flash_time_;
  std::array<Way, 4> ways_{{{Tier::device, Tier::host, {}},
                            {Tier::device, Tier::ssd, {}},
                            {Tier::host, Tier::device, {}},
                            {Tier::ssd, Tier::device, {}}}};
  std::size_t under_way_ = 0;
  Nanos now_;
  bool shared_ = true;            // the rates are those of the moves in service
  std::vector<Job*> in_service_;  // if so: which these are
};

}  // namespace spillway
