#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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
  // is on the device.
  bool kernels_fault = true;
  std::uint32_t window_blocks = 16;  // blocks faulted in last that each stream keeps
  MigrationOptions migration;
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

  // What the iteration of a plan does with memory, where that is known.
  struct Iteration {
    std::span<const BlockRange> homes;                // of the plan's tensors; blocks may be shared
    std::span<const Foresight::Row> rows;             // when blocks are used
    std::span<const std::vector<BlockRange>> births;  // by kernel: what it touches first
  };
  // From now on this plan's commands are issued, at the kernels that KernelReady names. It must be valid and outlive
  // its use, as must all in `iteration`. Without that its tensors are those that Allocated tells of, and blocks that
  // several share stay. With it, such a kernel starts when its whole working set is there, if that fits.
  void adopt(const Plan& plan, std::uint32_t kernel_count, const Iteration& iteration = {});

  // Takes what the machine tells and appends what it shall do. After failure() is set nothing more is asked for.
  void on(const Event& event, std::vector<Command>& out);

  const PageTable& table() const { return migration_.table(); }
  const PerLink<Bytes>& moved() const { return migration_.moved(); }
  Bytes dropped_clean() const { return migration_.dropped_clean(); }
  const std::optional<Failure>& failure() const { return migration_.failure(); }
  // The plan's, whose tensor was not where it said.
  std::uint64_t skipped_commands() const { return skipped_commands_; }

 private:
  enum class StreamState : std::uint8_t { idle, waiting, running };
  struct Stream {
    StreamState state = StreamState::idle;
    KernelId kernel;
    std::vector<BlockRange> working_set;  // disjoint, ascending
    std::vector<BlockRange> written;
    std::uint64_t missing = 0;  // blocks that the kernel waits for
  };
  struct Lodging {  // where a tensor lives
    BlockRange blocks;
    bool alive = false;
  };

  void handle(const Allocated& event, std::vector<Command>& out);
  void handle(const Freed& event, std::vector<Command>& out);
  void handle(const KernelReady& event, std::vector<Command>& out);
  void handle(const KernelDone& event, std::vector<Command>& out);
  void handle(const Faulted& event, std::vector<Command>& out);
  void handle(const MoveDone& event, std::vector<Command>& out);
  void handle(const MoveFailed& event, std::vector<Command>& out);

  Stream& stream(StreamId id);
  bool waits_for_all(KernelId kernel) const;
  std::uint64_t wait_for(StreamId id, BlockRange blocks, bool all, std::vector<Command>& out);
  void settle(std::vector<Command>& out);  // tells streams what has arrived
  void launch(StreamId id, std::vector<Command>& out);
  void expect_births(KernelId kernel, std::vector<Command>& out);
  void look_ahead(const KernelReady& event, bool granted);
  void planned_after(KernelId kernel);
  void planned_at(KernelId kernel);
  std::optional<BlockRange> home(TensorId tensor) const;

  ExecutorOptions options_;
  Migration migration_;
  std::unique_ptr<OnlinePolicy> online_;
  const Plan* plan_ = nullptr;
  Iteration iteration_;
  // Where each kernel's commands begin in the plan's lists, which are ordered by kernel; one entry more at the end.
  std::vector<std::uint32_t> evictions_from_, prefetches_from_;
  std::vector<Stream> streams_;
  std::vector<Lodging> lodgings_;    // by tensor
  std::vector<BlockRange> arrived_;  // blocks that became resident and were not told to the streams yet
  std::uint64_t skipped_commands_ = 0;
  std::uint32_t unplanned_kernels_ = 0;  // in a row
};

}  // namespace spillway
