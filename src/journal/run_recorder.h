#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "journal/iteration_ends.h"
#include "journal/played_run.h"
#include "journal/replay.h"
#include "journal/run_names.h"
#include "timeline/level_log.h"
#include "timeline/run_timeline.h"
#include "timeline/transfer_log.h"

namespace spillway {

// Writes down what happens in some iterations of a run that is replayed.
//
// Note [Waits of a run]
// A kernel that a plan makes wait tells so: it waits from when it is ready until it is launched. All others start at
// once, and their thread waits whenever it faults. Those waits are summed up and put before the kernel's start, as
// those of simulated demand paging are. A thread without a kernel may fault, too: while one kernel runs it works for
// that (OpenMP's threads do); else numpy or Python's own code touches memory, and that is shown as a kernel of its own.
class RunRecorder : public ReplayObserver {
 public:
  // All before the first one have ended. `ends` and `names` outlive it.
  RunRecorder(IterationRange iterations, const IterationEnds& ends, const RunNames& names);

  bool told(Nanos at, const Told& event, const PageTable& table) override;
  void asked(Nanos at, std::span<const Command> commands, const PageTable& table) override;

  // Up to the last event that was seen; nothing if no event was of these iterations.
  std::optional<RunTimeline> finish();

 private:
  struct Running {
    PlayedKernel kernel;
    bool started = false;
    std::vector<std::pair<Nanos, Nanos>> faults{};  // in which it waited
  };
  struct Fault {
    BlockRange blocks;
    Nanos since;
  };
  struct Alive {
    BlockRange blocks;
    TensorLabel label{};
  };

  void begin_tiers(Nanos at, const PageTable& table);
  void begin(const PageTable& table);
  void mark_iterations();
  void note(const Event& event, Nanos at, const PageTable& table);
  void ready(const KernelReady& event, Nanos at);
  void done(Running one, Nanos at);
  void came(StreamId stream, const Fault& fault, Nanos at);
  Running* runs_on(StreamId stream);
  void settle_faults(Nanos at, const PageTable& table);
  void made(const Allocated& event, Nanos at, const PageTable& table);
  void own(BlockRange blocks, std::uint32_t tensor);
  std::uint32_t tensor_of(TensorId tensor, const Alive& alive, const PageTable& table);
  std::string name_of(ExecutionId execution);

  const IterationRange wanted_;
  const IterationEnds& ends_;
  const RunNames& names_;

  const std::optional<Nanos> after_;  // the iterations before those ended then; nothing: there are none
  const Nanos until_;                 // the last one ends, as far as is known
  // Tiers change when the loop is told; what the script does later may have happened before, in another iteration.
  bool tiers_have_begun_ = false, has_begun_ = false;
  Nanos begin_, now_;
  std::uint64_t iterations_ = 0;
  std::unordered_map<TensorId, Alive> alive_;
  std::unordered_map<TensorLabel, std::uint32_t> by_label_;      // of the tensors below
  std::unordered_map<TensorId, std::uint32_t> without_label_;    // that are alive
  std::unordered_map<ExecutionId, std::uint32_t> without_name_;  // numbered as they come
  std::vector<std::uint32_t> owners_;                            // by block: the tensor that was there last
  std::map<LaunchId, Running> running_;
  std::map<StreamId, Fault> faults_;  // what threads wait for
  TransferLog transfers_;
  LevelLog levels_;
  RunTimeline result_;
};

}  // namespace spillway
