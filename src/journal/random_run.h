#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "journal/journalled_executor.h"
#include "journal/record.h"

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
  void play(JournalledExecutor& executor, std::uint32_t events);

 private:
  struct Stream {
    bool ready = false, launched = false;
  };
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  BlockRange any_blocks();
  bool next_event(Event& event);
  bool kernel_event(Event& event);
  void adopt(JournalledExecutor& executor);

  std::mt19937_64 random_;
  Nanos at_{1'000'000};
  std::vector<BlockRange> tensors_;  // by id; of no blocks: dead
  Stream streams_[3];
  std::vector<MoveId> flights_;
  std::vector<BlockAccess> accesses_;
  std::unique_ptr<Adoption> adopted_;
};

}  // namespace spillway
