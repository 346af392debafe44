#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/result.h"
#include "base/units.h"
#include "executor/online_policy.h"
#include "journal/journal_file.h"
#include "machines/cpu/block_io.h"
#include "machines/cpu/disk_wait.h"
#include "machines/cpu/eviction_method.h"
#include "memory/tier.h"

namespace spillway {

struct PagerStats {
  std::uint64_t faults = 0;  // of blocks that had bytes
  std::uint64_t first_touches = 0;
  PerLink<Bytes> moved;
  Bytes written;                    // to the SSD, also by moves that were given up
  Bytes dropped_clean;              // left for the SSD without being written, since it had the same bytes
  std::uint64_t unseen_writes = 0;  // blocks that should have been dropped so, and had changed
  PerTier<Bytes> held, peak;
  Nanos stall;  // time in which at least one thread waited
};

struct PagerConfig {
  Bytes device;  // the budget: every frame held for tensors counts
  Bytes host;
  std::string ssd_directory = "/var/tmp";
  Bytes ssd_capacity;              // zero: what the file system has
  std::string teardown_path = {};  // of a pipe whose end is held as long as the spill file; empty: none
  EvictionMethod method = EvictionMethod::automatic;
  std::unique_ptr<OnlinePolicy> (*online)(Bytes device) =
      nullptr;                // what moves ahead of kernels that no plan knows; null: nothing
  bool keeps_copies = false;  // see PolicyTraits
  // Both are called on threads that must not touch managed memory. The first, on the run loop's, whenever the counters
  // may have changed. The second when nothing can be served any more: threads wait for blocks that will never come, so
  // it must end the process; the default writes the message to stderr and exits with status 1.
  std::function<void(const PagerStats&)> on_progress = {};
  std::function<void(std::string_view)> on_failure = end_process;
  std::function<void(std::string_view)> on_child_ended = {};                         // see CpuMachineOptions
  std::function<std::unique_ptr<BlockIo>(std::unique_ptr<BlockIo>)> around_io = {};  // see CpuMachineOptions
  DiskWaits* disk_waits = nullptr;  // where threads say that they wait for a disk; null: nowhere
  // Where all that the executor is told and asks for is written; no path: nowhere. `iterations` of the script have
  // ended.
  JournalOptions journal = {};
  std::function<std::uint64_t()> iterations = {};
  // For tests.
  bool check_least_budget = true;
  Nanos patience{60'000'000'000};  // see CpuMachineOptions
};

// 16 blocks for each CPU that we may run on: each may have a thread that touches tensors, and one instruction of a
// thread must find all its blocks at once.
Bytes least_device_budget();

// The budgets in blocks, checked against what this machine has; errors name the option, the limit and the remedy.
struct PagerSize {
  std::uint32_t device_frames = 0;
  std::uint32_t host_frames = 0;
};
Result<PagerSize> size_of(const PagerConfig& config);

// How many blocks of addresses to reserve: twice what all tiers can hold, since holes between tensors cost addresses,
// and four times where that is little.
std::uint32_t range_blocks(PagerSize size, std::uint32_t ssd_slots);

}  // namespace spillway
