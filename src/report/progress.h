#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/units.h"

namespace spillway {

// One line on stderr that says how far long work is, redrawn in place and gone when the object is. Silent when stderr
// is not a terminal, and for work that is over at once.
class Progress {
 public:
  // `what` is a few words: "simulating g10". A total of 0 means that nobody knows it.
  Progress(std::string what, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void at(std::uint64_t done);  // cheap; draws ten times a second at most

 private:
  using Clock = std::chrono::steady_clock;
  void draw(std::uint64_t done);

  std::string what_;
  std::uint64_t total_;
  bool enabled_;
  bool drawn_ = false;
  Clock::time_point begin_, next_;
};

// "simulating g10   45 % (450 of 1000), 12 s left": as if all that is left took as long as what is done, which
// `elapsed` says. Without the time left as long as that says little.
std::string progress_text(const std::string& what, std::uint64_t done, std::uint64_t total, Nanos elapsed = {});

}  // namespace spillway
