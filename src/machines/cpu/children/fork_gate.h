#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/check.h"
#include "base/mutex.h"

namespace spillway {

// Where a thread that forks and the run loop wait for each other: the loop takes its snapshot while the thread is about
// to fork, and serves nothing until it has. So what the child sees of managed memory is of the same moment as the rest.
// One fork at a time; neither side waits for ever, since other threads' locks may keep both from going on.
class ForkGate {
 public:
  using Patience = std::chrono::milliseconds;
  using Ticket = std::uint32_t;  // of one fork

  // The thread: begin(), then tell the run loop, then wait; false if the loop could not, or did not come.
  Ticket begin() {
    const MutexLock lock(mutex_);
    CHECK(state_ != State::taken);  // That fork is not over.
    state_ = State::wanted;
    return ++last_;
  }
  bool wait_for_snapshot(Patience patience) {
    const MutexLock lock(mutex_);
    news_.wait_for(mutex_, patience, [&] { return state_ != State::wanted; });
    if (state_ == State::wanted) state_ = State::none;
    return state_ == State::taken;
  }
  void over() { set(State::none); }
  // Whether the run loop still waits: what it has taken is of this moment. Also in the child, as it was at the fork.
  bool is_closed() const { return state_ == State::taken; }

  // The run loop.
  bool is_wanted(Ticket ticket) {
    const MutexLock lock(mutex_);
    return state_ == State::wanted && ticket == last_;
  }
  void refuse(Ticket mine) {
    const MutexLock lock(mutex_);
    if (state_ != State::wanted || last_ != mine) return;
    state_ = State::none;
    news_.notify_all();
  }
  // What has been taken is this fork's, and nobody else's: its thread may have given up meanwhile.
  void taken_until_over(Ticket mine, Patience patience) {
    const MutexLock lock(mutex_);
    if (state_ != State::wanted || last_ != mine) return;
    state_ = State::taken;
    news_.notify_all();
    const auto is_over = [&]() SPILLWAY_REQUIRES(mutex_) { return state_ != State::taken || last_ != mine; };
    if (!news_.wait_for(mutex_, patience, is_over)) state_ = State::none;  // The child would see two moments.
  }

 private:
  enum class State : std::uint8_t { none, wanted, taken };
  void set(State state) {
    const MutexLock lock(mutex_);
    state_ = state;
    news_.notify_all();
  }

  Mutex mutex_;
  Condition news_;
  std::atomic<State> state_{State::none};  // written under the mutex; a child reads it without
  Ticket last_ SPILLWAY_GUARDED_BY(mutex_) = 0;
};

}  // namespace spillway
