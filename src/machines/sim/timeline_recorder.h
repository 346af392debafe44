#pragma once

#include <span>
#include <vector>

#include "analysis/lifetimes.h"
#include "executor/machine.h"
#include "machines/sim/layout.h"
#include "memory/page_table.h"
#include "timeline/level_log.h"
#include "timeline/run_timeline.h"
#include "timeline/transfer_log.h"
#include "trace/trace.h"

namespace spillway {

// Writes down what happens in an iteration of the simulated machine: it sees what the executor is told and asks for, in
// order. Each iteration replaces the one before.
class TimelineRecorder {
 public:
  // They outlive it.
  TimelineRecorder(const Trace& trace, const Lifetimes& lifetimes);

  void begin_iteration(Nanos at, const Layout& layout, const PageTable& table);
  void told(const Stamped& event);
  // The answer to that.
  void asked(Nanos at, std::span<const Command> commands, const PageTable& table);
  // What happened since the iteration began, until `end`. `waits`: of each kernel after it was ready. Names and what
  // the caller knows of policy and machine are not filled in.
  RunTimeline finish(Nanos end, std::span<const Nanos> waits) const;

 private:
  void own(BlockRange blocks, std::uint32_t tensor);

  const Trace& trace_;
  const Lifetimes& lifetimes_;
  std::vector<std::uint32_t> owners_;  // by block: the tensor that was there last
  TransferLog transfers_;
  std::vector<Nanos> ready_, done_;  // by kernel
  std::vector<PerTier<Bytes>> at_start_;
  LevelLog levels_;
  KernelId running_;
  Nanos begin_;
};

}  // namespace spillway
