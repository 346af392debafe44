#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "machines/cpu/fault_queue.h"
#include "machines/cpu/userfault.h"
#include "machines/real/doorbell.h"

namespace spillway {

// The thread that takes faults from the kernel and hands them to the run loop. It never allocates, locks, logs or
// touches managed memory: whoever waits for it may hold any lock of the process.
class FaultReader {
 public:
  using Fail = std::function<void(std::string_view)>;
  // All three outlive the reader; `bell` is rung after each batch. `fail` does not return; it is called when faults can
  // no longer be read: threads that wait for blocks would wait for ever, or read zeroes once the kernel has given the
  // range up.
  static Result<std::unique_ptr<FaultReader>> start(const Userfault& userfault, FaultQueue& queue, const Doorbell& bell,
                                                    Fail fail);
  ~FaultReader();
  FaultReader(const FaultReader&) = delete;

  // Of its own; a forked child should close it.
  int descriptor() const { return stop_.fd(); }
  // The run loop's own faults cannot wait for the run loop. They happen only where the script has dropped pages of a
  // tensor by madvise while the loop copies it; those are zeroes, and the reader says so at once. They are protected
  // as the rest of their block may be, which leaves: what the script writes there now must not get lost.
  void run_loop_is(pid_t thread) { run_loop_.store(thread, std::memory_order_relaxed); }

 private:
  FaultReader(const Userfault& userfault, FaultQueue& queue, const Doorbell& bell, Fail fail, Doorbell stop)
      : userfault_(userfault), queue_(queue), bell_(bell), fail_(std::move(fail)), stop_(std::move(stop)) {}
  void serve() noexcept;

  const Userfault& userfault_;
  FaultQueue& queue_;
  const Doorbell& bell_;
  Fail fail_;
  Doorbell stop_;
  std::atomic<pid_t> run_loop_{0};
  std::thread thread_;
};

}  // namespace spillway
