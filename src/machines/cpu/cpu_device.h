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
#include "machines/cpu/cpu_machine.h"
#include "machines/cpu/eviction_method.h"
#include "machines/real/block_io.h"
#include "machines/real/real_device.h"

namespace spillway {

struct CpuDeviceConfig : RealDeviceConfig {
  std::string teardown_path = {};  // of a pipe whose end is held as long as the spill file; empty: none
  EvictionMethod method = EvictionMethod::automatic;
  // Called when nothing can be served any more, on a thread that must not touch managed memory: threads wait for blocks
  // that will never come, so it must end the process. The default writes the message to stderr; the status is 1.
  std::function<void(std::string_view)> on_failure = end_process;
  std::function<void(std::string_view)> on_child_ended = {};                         // see CpuMachineOptions
  std::function<std::unique_ptr<BlockIo>(std::unique_ptr<BlockIo>)> around_io = {};  // see CpuMachineOptions
  // For tests.
  bool check_least_budget = true;
  Nanos patience{60'000'000'000};  // see CpuMachineOptions
};

// The CPU machine as a run has it.
class CpuDevice final : public RealDevice {
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

  CpuMachine& machine() override { return *machine_; }
  const CpuMachine& machine() const override { return *machine_; }
  EvictionMethod eviction_method() const { return method_; }

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
      : RealDevice(config, std::move(file)),
        config_(std::move(config)),
        method_(method),
        machine_(std::move(machine)) {}
  std::uint32_t slots_of_others() override;
  std::string kept_for_others() const override;

  CpuDeviceConfig config_;
  EvictionMethod method_;
  std::unique_ptr<CpuMachine> machine_;
  std::uint32_t slots_for_children_ = 0;  // beyond those for tensors
};

}  // namespace spillway
