#pragma once

#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "executor/observed_executor.h"
#include "journal/journal_file.h"
#include "machines/real/real_device.h"
#include "runtime/pager_config.h"

namespace spillway {

// The one thread that decides in a run: it takes what the machine tells to an executor, and what that asks for to the
// machine. It allocates (malloc), but touches no managed memory and takes no lock that a thread could hold while it
// faults.
class RunLoop {
 public:
  // All outlive it. `journal`: where all is written; null: nowhere.
  RunLoop(RealDevice& device, const PagerConfig& config, JournalFile* journal, std::vector<Observer*> observers)
      : device_(device), config_(config), journal_(journal), observers_(std::move(observers)) {}
  // Stops the machine, and waits until nothing is served any more; so does the destructor.
  void end();
  ~RunLoop();
  RunLoop(const RunLoop&) = delete;
  RunLoop& operator=(const RunLoop&) = delete;

  Result<> start();
  // In a forked child: the thread is the parent's.
  void abandon() { thread_.detach(); }

 private:
  void run() noexcept;
  void fail_for_good(const std::string& message) noexcept;

  RealDevice& device_;
  const PagerConfig& config_;
  JournalFile* journal_;
  std::vector<Observer*> observers_;
  std::thread thread_;
};

}  // namespace spillway
