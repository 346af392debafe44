#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace spillway {

// Where a thread that forks and the run loop wait for each other: the loop takes its snapshot while the thread is about
// to fork, and serves nothing until it has. So what the child sees of managed memory is of the same moment as the rest.
// One fork at a time.
class ForkGate {
 public:
  using Patience = std::chrono::milliseconds;

  // The thread: begin(), then tell the run loop, then wait; false if the loop did not come, and will not.
  void begin() { set(State::wanted); }
  bool wait_for_snapshot(Patience patience) {
    std::unique_lock lock(mutex_);
    if (news_.wait_for(lock, patience, [&] { return state_ == State::taken; })) return true;
    state_ = State::none;
    return false;
  }
  void over() { set(State::none); }

  // The run loop. The thread may have given up; other threads' locks may keep it from forking, so even the loop does
  // not wait for ever.
  bool is_wanted() {
    const std::lock_guard lock(mutex_);
    return state_ == State::wanted;
  }
  void taken_until_over(Patience patience) {
    std::unique_lock lock(mutex_);
    if (state_ != State::wanted) return;
    state_ = State::taken;
    news_.notify_all();
    news_.wait_for(lock, patience, [&] { return state_ != State::taken; });  // The next fork may have begun.
  }

 private:
  enum class State { none, wanted, taken };
  void set(State state) {
    const std::lock_guard lock(mutex_);
    state_ = state;
    news_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable news_;
  State state_ = State::none;
};

}  // namespace spillway
