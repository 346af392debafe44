#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "executor/machine.h"
#include "journal/record.h"

namespace spillway {

// What machine and executor owe each other at a point of a run: moves that are not answered, kernels that wait. It
// refuses what no machine tells (the executor relies on that, and a damaged or forged journal may say anything), and
// says what a run waited for when it ended.
class Ledger {
 public:
  Ledger(std::uint32_t blocks, bool kernels_fault) : blocks_(blocks), kernels_fault_(kernels_fault) {}

  struct Kernel {  // that is not done
    KernelId kernel;
    PlanId plan;
    Nanos since;  // it wanted to start, or was launched
    bool launched = false, queued = false;
  };
  struct Flight {
    Move move;
    Nanos since;
    bool cancelled = false;
  };
  struct Fault {  // the last one of a stream, whose first block has not come yet
    BlockRange blocks;
    Nanos since;
  };

  // Errors say what is wrong with it. What is told is taken into account.
  Result<> told(const Event& event, Nanos at);
  void asked(const Command& command, Nanos at);

  const std::map<LaunchId, Kernel>& kernels() const { return kernels_; }
  const std::map<StreamId, Fault>& faults() const { return faults_; }
  const std::map<MoveId, Flight>& flights() const { return flights_; }
  std::uint64_t tensors() const { return alive_; }

 private:
  Result<> check(BlockRange blocks) const;
  Result<> check(StreamId stream) const;
  Result<> take(const Allocated& event, Nanos at);
  Result<> take(const Freed& event, Nanos at);
  Result<> take(const KernelReady& event, Nanos at);
  Result<> take(const KernelQueued& event, Nanos at);
  Result<> take(const KernelDone& event, Nanos at);
  Result<> take(const Adopted& event, Nanos at);
  Result<> take(const Faulted& event, Nanos at);
  Result<> take(const Touched& event, Nanos at);
  Result<> take(const Elapsed& event, Nanos at);
  Result<> take(const MoveDone& event, Nanos at);
  Result<> take(const MoveFailed& event, Nanos at);
  Result<> land(MoveId move, bool done);
  void come(BlockRange blocks);
  void look_again(BlockId block);

  std::uint32_t blocks_;
  bool kernels_fault_;
  std::shared_ptr<const FollowedPlan> plan_;
  std::vector<BlockRange> homes_;  // by tensor; of no blocks: it is not alive
  std::uint64_t alive_ = 0;
  std::map<LaunchId, Kernel> kernels_;
  std::map<StreamId, Fault> faults_;
  std::map<MoveId, Flight> flights_;
  std::set<BlockId> split_;
};

// Whether an executor can begin with this, and follow that on so many blocks. Errors say what is wrong.
Result<> check(const Beginning& beginning, std::uint32_t most_blocks);
Result<> check(const FollowedPlan& plan, std::uint32_t blocks);

}  // namespace spillway
