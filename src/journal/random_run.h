#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "executor/observed_executor.h"
#include "journal/journal_observer.h"

namespace spillway {

// A program and a machine that do anything that they may, for tests: tensors come and go, kernels of some streams start
// and end, blocks fault, moves end in any order or fail, and plans are taken up that have nothing to do with it all. A
// function of its seed alone.
class RandomRun {
 public:
  explicit RandomRun(std::uint64_t seed) : random_(seed) {}

  // What an executor of it begins with.
  static PageTable table();
  // Until so many events have been told, or the executor has given up.
  void play(ObservedExecutor& executor, std::uint32_t events);

 private:
  struct Stream {
    std::uint32_t serial = 0;             // of the latest that is ready
    std::uint32_t done = 0;               // of the last that is
    bool launched = true, queued = true;  // the latest
  };
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  BlockRange any_blocks();
  bool next_event(Event& event);
  bool kernel_event(Event& event);
  Adopted any_plan();

  std::mt19937_64 random_;
  Nanos at_{1'000'000};
  std::vector<BlockRange> tensors_;  // by id; of no blocks: dead
  Stream streams_[3];
  std::vector<MoveId> flights_;
  std::vector<BlockAccess> accesses_;
  PlanId plan_{};
};

struct LooksAhead {
  OnlineMaker make = nullptr;  // null: nobody does
  Bytes device;
};
// An executor for it, with its journal.
class JournalledExecutor {
 public:
  explicit JournalledExecutor(JournalFile& file, ExecutorOptions options = {}, LooksAhead online = {});
  void play(RandomRun& run, std::uint32_t events) { run.play(executor_, events); }
  void play(RandomRun&& run, std::uint32_t events) { run.play(executor_, events); }
  void on(const Stamped& event, std::vector<Command>& out) { executor_.on(event, out); }

 private:
  JournalObserver journal_;
  ObservedExecutor executor_;
};

}  // namespace spillway
