#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "executor/migration.h"
#include "machines/real/disk_wait.h"
#include "machines/real/real_machine.h"
#include "machines/real/spill_file.h"
#include "memory/page_table.h"

namespace spillway {

struct RealDeviceConfig {
  Bytes device;  // the budget: every frame held for tensors counts
  Bytes host;
  Bytes block_bytes = kBlockBytes;
  std::string ssd_directory = "/var/tmp";
  Bytes ssd_capacity;               // zero: what the file system has
  DiskWaits* disk_waits = nullptr;  // where threads say that they wait for a disk; null: nowhere
};

// A machine as a run has it: with its file on the SSD, and the promise that whatever tensors may need has its place on
// some tier. What promises is called by one thread at a time.
class RealDevice {
 public:
  virtual ~RealDevice() = default;
  RealDevice(const RealDevice&) = delete;
  RealDevice& operator=(const RealDevice&) = delete;

  virtual RealMachine& machine() = 0;
  virtual const RealMachine& machine() const = 0;
  PageTable empty_table() const;  // what an executor begins with
  // What to tell the user when the executor can do nothing more.
  std::string explain(const Failure& failure) const;

  // Promises that tensors in so many blocks can be stored. The failure is empty where the tiers are too small.
  Result<> promise(std::uint64_t blocks);
  bool could_store(std::uint64_t blocks) const { return slots_needed(blocks) <= file_->capacity_slots(); }
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

 protected:
  RealDevice(const RealDeviceConfig& config, std::unique_ptr<SpillFile> file)
      : budgets_(config), file_(std::move(file)) {}
  static Result<std::unique_ptr<SpillFile>> open_file(const RealDeviceConfig& config);
  // The end of a pipe that is held as long as the file; nothing where the path is empty or it cannot be had.
  static std::optional<UniqueFd> open_teardown(const std::string& path);
  // Slots beyond those for tensors, whoever has them, which may change between two promises.
  virtual std::uint32_t slots_of_others() { return 0; }
  virtual std::string kept_for_others() const { return {}; }
  std::uint64_t slots_needed(std::uint64_t blocks) const;  // so that these blocks can be stored
  SpillFile& file() { return *file_; }
  void abandon_file() { static_cast<void>(file_.release()); }  // In a forked child: it is the parent's.

 private:
  std::uint64_t host_blocks() const { return budgets_.host.value / budgets_.block_bytes.value; }

  RealDeviceConfig budgets_;
  std::unique_ptr<SpillFile> file_;
};

}  // namespace spillway
