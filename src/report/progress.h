#pragma once

#include <chrono>
#include <cstdint>
#include <string>

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
  Clock::time_point next_;
};

// "simulating g10   45 % (450 of 1000)"
std::string progress_text(const std::string& what, std::uint64_t done, std::uint64_t total);

}  // namespace spillway
