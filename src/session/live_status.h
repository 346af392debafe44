#pragma once

#include <cstddef>
#include <string>

#include "base/units.h"
#include "session/session.h"

namespace spillway {

// How far a run is, on one line of the terminal that is drawn again and again. Silent where stderr is no terminal.
class LiveStatus {
 public:
  explicit LiveStatus(const Session& session);
  ~LiveStatus();
  LiveStatus(const LiveStatus&) = delete;
  LiveStatus& operator=(const LiveStatus&) = delete;

  void draw();

  // What is counted over time.
  struct Moment {
    Nanos at, stall;
    Bytes in, out;
  };

 private:
  const Session& session_;
  bool enabled_;
  bool drawn_ = false;
  Moment last_{};
};

LiveStatus::Moment moment_of(const SessionState& state, Nanos at);

// "iteration 7, 4.210 s  stall 3 %  device 824 MiB  ssd 803 MiB  in 0.4, out 0.4 GB/s": the last iteration that
// has ended, and what happened between the two moments. Where that is too long for the columns:
// "it 7 4.21 s stall 3 % dev 824M ssd 803M in 0.4 out 0.4 GB/s".
std::string status_text(const Session& session, const LiveStatus::Moment& before, const LiveStatus::Moment& now,
                        std::size_t columns);

}  // namespace spillway
