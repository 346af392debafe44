#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "executor/migration.h"
#include "machines/cpu/block_io.h"
#include "machines/cpu/cpu_machine.h"
#include "machines/cpu/disk_wait.h"
#include "machines/cpu/eviction_method.h"
#include "machines/cpu/spill_file.h"
#include "memory/page_table.h"

namespace spillway {

struct CpuDeviceConfig {
  Bytes device;  // the budget: every frame held for tensors counts
  Bytes host;
  std::string ssd_directory = "/var/tmp";
  Bytes ssd_capacity;              // zero: what the file system has
  std::string teardown_path = {};  // of a pipe whose end is held as long as the spill file; empty: none
  EvictionMethod method = EvictionMethod::automatic;
  // Called when nothing can be served any more, on a thread that must not touch managed memory: threads wait for blocks
  // that will never come, so it must end the process. The default writes the message to stderr; the status is 1.
  std::function<void(std::string_view)> on_failure = end_process;
  std::function<void(std::string_view)> on_child_ended = {};                         // see CpuMachineOptions
  std::function<std::unique_ptr<BlockIo>(std::unique_ptr<BlockIo>)> around_io = {};  // see CpuMachineOptions
  DiskWaits* disk_waits = nullptr;  // where threads say that they wait for a disk; null: nowhere
  // For tests.
  bool check_least_budget = true;
  Nanos patience{60'000'000'000};  // see CpuMachineOptions
};

// The CPU machine as a run has it: with its file on the SSD, and the promise that whatever tensors and forked children
// may need has its place on some tier. What promises is called by one thread at a time.
class CpuDevice {
 public:
  // Whether it could be opened here: the budgets, the directory, and the rights and abilities of this kernel, each
  // tried for real and given back. The error says what is missing and the remedy.
  struct Found {
    EvictionMethod method;  // that it would use
    Bytes ssd;              // that it could
  };
  static Result<Found> check(const CpuDeviceConfig& config);
  static Result<std::unique_ptr<CpuDevice>> open(CpuDeviceConfig config);
  // In a forked child: all it has is the parent's.
  void abandon();

  CpuMachine& machine() { return *machine_; }
  const CpuMachine& machine() const { return *machine_; }
  EvictionMethod eviction_method() const { return method_; }
  PageTable empty_table() const;  // what an executor begins with
  // What to tell the user when the executor can do nothing more.
  std::string explain(const Failure& failure) const;

  // Promises that tensors in so many blocks can be stored. The failure is empty where the tiers are too small.
  Result<> promise(std::uint64_t blocks);
  bool could_store(std::uint64_t blocks) const;
  bool needs_ssd(std::uint64_t blocks) const { return slots_needed(blocks) > 0; }
  // That they can, and their copies while they are on the device, too, as far as there is plenty of space.
  void promise_copies(std::uint64_t blocks);
  // Why there is no room for a tensor, beside those that take so much already. `reason` says what else there is to say,
  // and its remedy; without one the tiers are too small.
  struct Tensors {
    Bytes bytes;
    std::uint32_t blocks = 0;
  };
  std::unexpected<Error> no_room(Bytes wanted, Tensors already, std::string_view reason) const;

  // A fork: in this order, all but the second while nothing else is promised. The child's end of the socket through
  // which it asks to be served; nothing if it will not be.
  void forget_ended_children();
  struct Fork {
    UniqueFd socket;
    std::uint32_t slots = 0;  // that children might need
  };
  std::optional<Fork> begin_fork();
  void promise_children(std::uint32_t slots, std::uint64_t blocks_of_tensors);

 private:
  CpuDevice(CpuDeviceConfig config, EvictionMethod method, std::unique_ptr<SpillFile> file,
            std::unique_ptr<CpuMachine> machine)
      : config_(std::move(config)), method_(method), file_(std::move(file)), machine_(std::move(machine)) {}
  std::uint64_t slots_needed(std::uint64_t blocks) const;

  CpuDeviceConfig config_;
  EvictionMethod method_;
  std::unique_ptr<SpillFile> file_;
  std::unique_ptr<CpuMachine> machine_;
  std::uint32_t slots_for_children_ = 0;  // beyond those for tensors
};

}  // namespace spillway
