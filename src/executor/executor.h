#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "executor/machine.h"
#include "executor/migration.h"
#include "executor/online_policy.h"
#include "memory/page_table.h"
#include "plan/plan.h"

namespace spillway {

struct ExecutorOptions {
  // true: a kernel starts at once and what is absent comes by page faults. false: it starts when its whole working set
  // is on the device. While that does not fit beside what kernels in flight use, it waits for those; if it never fits,
  // that is a failure.
  bool kernels_fault = true;
  std::uint32_t window_blocks = 16;  // blocks faulted in last that each stream keeps
  MigrationOptions migration = {};
};

// Decides what moves when. The same object serves the simulator and real machines: it knows no clock, thread, system
// call or randomness; time arrives inside events. Used by one thread.
class Executor {
 public:
  // What a planned kernel makes gets its frames when the kernels before it in the iteration, so many, start.
  static constexpr std::uint32_t kBirthsAhead = 3;
  // After so many kernels in a row that no plan knows what planned ones are about to make is not waited for any more.
  static constexpr std::uint32_t kPatience = 32;

  // The table says which blocks there are, what the tiers hold, and what is where at the start. `online` decides for
  // kernels that no plan knows; null: nothing moves ahead of those.
  Executor(PageTable table, ExecutorOptions options, std::unique_ptr<OnlinePolicy> online = nullptr);

  // Takes what the machine tells and appends what it shall do. After failure() is set nothing more is asked for.
  void on(const Event& event, std::vector<Command>& out);

  const PageTable& table() const { return migration_.table(); }
  const PerLink<Bytes>& moved() const { return migration_.moved(); }
  Bytes dropped_clean() const { return migration_.dropped_clean(); }
  // Why nothing can go on, for good.
  const std::optional<Failure>& failure() const { return failure_ ? failure_ : migration_.failure(); }
  // The plan's, whose tensor was not where it said.
  std::uint64_t skipped_commands() const { return skipped_commands_; }

  // CHECKs everything that must hold between two events; O(blocks). For tests.
  void check_invariants() const;

 private:
  struct InFlight {  // a kernel that is ready and not done
    enum class State : std::uint8_t { wants_grant, wants_blocks, launched, queued };
    LaunchId launch;
    State state = State::wants_grant;
    KernelId kernel;  // of the plan that was followed when it became ready, or kNoKernel
    PlanId plan;
    std::vector<BlockRange> working_set;  // disjoint, ascending
    std::vector<BlockRange> written;
    std::uint64_t missing = 0;     // blocks that it waits for
    std::uint64_t started_at = 0;  // so many departures were before
    bool fits = true;              // on the device, as far as it has said what it uses

    bool has_started() const { return state >= State::launched; }
  };
  struct Awaited {  // a planned move, by a kernel that does not start before it has ended
    KernelId kernel;
    BlockRange blocks;
    bool up;
  };
  struct Delayed {
    std::uint32_t timer;
    std::variant<Eviction, Prefetch> command;
  };
  struct Lodging {  // where a tensor lives
    BlockRange blocks;
    bool alive = false;
  };

  void handle(const Allocated& event, std::vector<Command>& out);
  void handle(const Freed& event, std::vector<Command>& out);
  void handle(const KernelReady& event, std::vector<Command>& out);
  void handle(const KernelQueued& event, std::vector<Command>& out);
  void handle(const KernelDone& event, std::vector<Command>& out);
  void handle(const Adopted& event, std::vector<Command>& out);
  void handle(const Touched& event, std::vector<Command>& out);
  void handle(const Elapsed& event, std::vector<Command>& out);
  void handle(const Faulted& event, std::vector<Command>& out);
  void handle(const MoveDone& event, std::vector<Command>& out);
  void handle(const MoveFailed& event, std::vector<Command>& out);

  InFlight& find(LaunchId launch);
  bool follows(PlanId plan) const { return plan_ != nullptr && plan_->id == plan; }
  bool waits_for_all(KernelId kernel) const;
  bool fits(std::span<const BlockAccess> accesses) const;
  bool grant(InFlight& kernel);
  void ask_for_working_set(InFlight& kernel, std::vector<Command>& out);
  std::uint64_t wait_for(StreamId id, BlockRange blocks, bool all, std::vector<Command>& out);
  void written_on_arrival(BlockRange written, BlockRange arrived, std::vector<Command>& out);
  void settle(std::vector<Command>& out);  // tells kernels what has arrived
  void start(InFlight& kernel, std::vector<Command>& out);
  void note_started(InFlight& kernel, std::vector<Command>& out);
  void note_oldest();
  void grant_those_that_wait(std::vector<Command>& out);
  void expect_births(KernelId kernel, std::vector<Command>& out);
  void look_ahead(const KernelReady& event, const InFlight& ready, bool granted);
  void bring_ahead(const std::vector<BlockRange>& prefetches);
  bool touch_together(const Faulted& event, std::vector<Command>& out);
  void start_if_it_may(InFlight& kernel, std::vector<Command>& out);
  bool is_held_back(const InFlight& kernel) const;
  void planned_after(const InFlight& done, std::vector<Command>& out);
  void planned_at(const InFlight& started, std::vector<Command>& out);
  template <class PlannedMove>
  void issue(const PlannedMove& command, std::vector<Command>& out);
  void evict(const Eviction& eviction);
  void prefetch(const Prefetch& prefetch);
  void await(std::optional<KernelId> by, BlockRange blocks, bool up);
  std::optional<BlockRange> home(TensorId tensor) const;

  ExecutorOptions options_;
  Migration migration_;
  std::unique_ptr<OnlinePolicy> online_;
  std::shared_ptr<const FollowedPlan> plan_;
  // Where each kernel's commands begin in the plan's lists, which are ordered by kernel; one entry more at the end.
  std::vector<std::uint32_t> evictions_from_, prefetches_from_;
  std::vector<Awaited> awaited_;
  std::vector<Delayed> delayed_;  // commands of this plan, until their time is over
  std::uint32_t next_timer_ = 0;
  std::vector<InFlight> in_flight_;  // in the order in which they became ready
  std::vector<Lodging> lodgings_;    // by tensor
  std::vector<BlockRange> arrived_;  // blocks that became resident and were not told to the kernels yet
  std::uint64_t skipped_commands_ = 0;
  std::uint32_t unplanned_kernels_ = 0;  // in a row
  std::optional<Failure> failure_;       // that no move has part in
};

}  // namespace spillway
