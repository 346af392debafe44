#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

namespace spillway {

// What may wait for a disk, and must not do so under a lock that others need: it is left here when it has been decided,
// and done in that order, once the lock is released. One thread at a time does it. Another one leaves its own to that
// thread and goes on. Any thread.
class DiskWork {
 public:
  // For a moment only: under any lock.
  void leave(std::function<void()> work) {
    const std::scoped_lock lock(mutex_);
    left_.push_back(std::move(work));
  }
  // All that was left has been done.
  bool is_done() {
    const std::scoped_lock lock(mutex_);
    return left_.empty() && !is_busy_;
  }
  // With no lock held. Returns at once where another thread is busy with it, which then does what this one has left.
  void go_on() {
    std::unique_lock lock(mutex_);
    if (!is_busy_) do_all(lock);
  }
  // With no lock held. Afterwards all that had been left is done.
  void finish() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return !is_busy_; });
    do_all(lock);
  }

 private:
  void do_all(std::unique_lock<std::mutex>& lock) {
    struct Turn {  // It ends, too, where memory runs out.
      ~Turn() {
        if (!lock.owns_lock()) lock.lock();
        work.is_busy_ = false;
        work.ended_.notify_all();
      }
      DiskWork& work;
      std::unique_lock<std::mutex>& lock;
    };
    is_busy_ = true;
    const Turn turn{*this, lock};
    while (!left_.empty()) {
      std::function<void()> next = std::move(left_.front());
      left_.pop_front();
      lock.unlock();
      std::exchange(next, nullptr)();
      lock.lock();
    }
  }

  std::mutex mutex_;  // a leaf; guards what follows
  std::condition_variable ended_;
  std::deque<std::function<void()>> left_;
  bool is_busy_ = false;  // a thread does some of it
};

}  // namespace spillway
