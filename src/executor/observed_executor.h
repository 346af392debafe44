#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "executor/executor.h"
#include "executor/machine.h"

namespace spillway {

// Sees what an executor is told and what it asks for, in order, on the thread that uses the executor.
class Observer {
 public:
  virtual ~Observer() = default;
  // The executor has not seen it yet: should the event end the process, it is the last one that was observed.
  virtual void told(const Stamped& event) = 0;
  // The answer to that, which may be nothing.
  virtual void asked(std::span<const Command> commands, const std::optional<Failure>& failure) = 0;
};

// An executor with those that observe it: nobody can tell it anything that they do not see. Used by one thread.
class ObservedExecutor {
 public:
  // The observers outlive it.
  ObservedExecutor(PageTable table, const ExecutorOptions& options, std::unique_ptr<OnlinePolicy> online,
                   std::vector<Observer*> observers)
      : observers_(std::move(observers)), executor_(std::move(table), options, std::move(online)) {}

  // Replaces what is in `out` by what the machine shall do. Times must not go backwards.
  void on(const Stamped& event, std::vector<Command>& out) {
    for (Observer* observer : observers_) observer->told(event);
    out.clear();
    executor_.on(event.what, out);
    for (Observer* observer : observers_) observer->asked(out, executor_.failure());
  }

  const Executor& executor() const { return executor_; }

 private:
  std::vector<Observer*> observers_;
  Executor executor_;
};

}  // namespace spillway
