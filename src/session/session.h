#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "machines/cpu/eviction_method.h"
#include "machines/real/disk_wait.h"
#include "memory/tier.h"
#include "roofline/device_rates.h"
#include "runtime/run_figures.h"
#include "session/published.h"

// The memory that the supervisor (`spillway run`, `spillway trace`) and the hook in the script's process share. The
// supervisor makes it as a memfd and fills in the configuration before the script starts; the hook finds it through the
// environment, since Python's subprocess and others close inherited descriptors, and writes the state. The supervisor
// reports from it, so everything here survives a kill -9 of the script: plain structs, lock-free atomics, no pointers.
//
// This header needs no library but libc: the small preloaded library uses it in every process that the script starts.
namespace spillway {

inline constexpr std::uint64_t kSessionMagic = 0x7961776c'6c697073;  // "spillway" in a little-endian memory
inline constexpr std::uint32_t kSessionVersion = 1;
inline constexpr const char* kSessionVariable = "SPILLWAY_SESSION";  // "/proc/<supervisor>/fd/<n>"

inline constexpr std::size_t kPathBytes = 4096;
inline constexpr std::size_t kMaxIterations = std::size_t{1} << 20;
inline constexpr std::size_t kMaxUnmanaged = 64;
inline constexpr std::size_t kMaxNotices = 16;
inline constexpr std::size_t kMaxPlans = 64;
inline constexpr std::size_t kMostCosts = 3;

enum class SessionMode : std::uint32_t {
  run,      // hold the budget, spill what exceeds it
  trace,    // let PyTorch allocate as it likes, only record
  dry_run,  // record what is on PyTorch's device `meta`, where nothing is allocated; other tensors are none of ours
};

// What planning knows of the machine, as measured; zeroes where it could not be, or nothing is planned.
struct MeasuredRates {
  BytesPerSecond to_device, from_device, ssd_read, ssd_write;
  Nanos ssd_read_latency, ssd_write_latency, fault;

  bool are_known() const { return to_device.value != 0; }
};

// Written by the supervisor before the script starts, constant afterwards. Texts end with a zero.
struct SessionConfig {
  SessionMode mode = SessionMode::run;
  EvictionMethod eviction_path = EvictionMethod::automatic;
  std::int32_t gpu = -1;  // whose tensors are managed, as the driver counts; -1: the CPU's
  bool strict = false;    // of a GPU: each launch is checked (Note [Strict runs])
  std::uint64_t device_budget_bytes = 0;
  bool unlimited = false;  // the budget is all memory that there is
  std::uint64_t host_budget_bytes = 0;
  std::uint64_t block_bytes = kBlockBytes.value;
  std::uint64_t pinned_budget_bytes = 0;  // of a GPU: all that may be pinned, host memory and buffers for the SSD
  std::uint64_t ssd_capacity_bytes = 0;   // 0: what the file system has
  std::uint64_t ssd_free_bytes = 0;       // of that, before the script starts
  std::uint64_t io_timeout_ns = 0;        // a transfer that takes longer ends the run; 0: none does
  std::uint64_t iteration = 0;            // 0: the steady one; N: the one after the N-th optimizer step
  MeasuredRates rates;
  DeviceRates dry_rates;                         // of a dry run: kernels' times are estimated for such a device
  std::array<char, 256> dry_machine{};           // its name, and what was changed of it
  std::uint64_t dry_ideal_ns = 0;                // so long its iteration is known to take; 0: that is not known
  std::array<char, 32> policy{};                 // "auto"
  std::array<char, kPathBytes> ssd_directory{};  // absolute
  std::array<char, kPathBytes> record_path{};    // absolute name of the trace file to write; empty: record nothing
  std::array<char, kPathBytes> plan_path{};      // absolute name of a plan to follow; empty: none
  std::array<char, kPathBytes> blocks_path{};    // where the plan followed goes, and its trace, without their ends
  bool records_for_itself = false;  // for predictions; the user asked for no trace, and is told nothing of it
  std::array<char, kPathBytes> teardown_path{};       // of a pipe to hold as long as the spill file (see Teardown)
  std::array<char, kPathBytes> journal_path{};        // absolute name of the journal; empty: none
  std::array<char, kPathBytes> torch_library{};       // absolute name of libspillway_torch.so
  std::array<char, kPathBytes> torch_cuda_library{};  // of libspillway_torch_cuda.so; empty for the CPU, like the next
  std::array<char, kPathBytes> cuda_driver{};         // absolute name of the real libcuda.so.1
  std::array<char, 128> gpu_name{};                   // "NVIDIA H200"
  int cuda_version = 0;                               // the newest that the driver knows: 12080 is 12.8
};

// A text that one process writes once and others read: the first writer wins, and a reader sees all of it or nothing,
// even if the writer was killed half-way.
template <std::size_t kBytes>
class OnceText {
 public:
  // False if somebody was first. Cuts what does not fit.
  bool set(std::string_view text) noexcept {
    std::uint32_t expected = kEmpty;
    if (!state_.compare_exchange_strong(expected, kWriting, std::memory_order_acq_rel)) return false;
    const std::string_view kept = cut(text);
    if (!kept.empty()) std::memcpy(text_.data(), kept.data(), kept.size());
    size_ = static_cast<std::uint32_t>(kept.size());
    state_.store(kWritten, std::memory_order_release);
    return true;
  }
  static std::string_view cut(std::string_view text) noexcept { return text.substr(0, kBytes); }
  bool is_set() const noexcept { return state_.load(std::memory_order_acquire) == kWritten; }
  // Empty if nobody has written it.
  std::string_view get() const noexcept {
    if (!is_set()) return {};
    // The size comes from a process that we do not trust with ours.
    return {text_.data(), size_ < kBytes ? size_ : kBytes};
  }

 private:
  enum : std::uint32_t { kEmpty, kWriting, kWritten };
  std::atomic<std::uint32_t> state_{kEmpty};
  std::uint32_t size_ = 0;
  std::array<char, kBytes> text_{};
};

// A process that made tensors with PyTorch while another one had the budget already.
struct UnmanagedProcess {
  std::atomic<std::int64_t> pid{0};
  OnceText<256> name;  // its command line
};

// Written by the hook, read by the supervisor at any time. Counters only grow, peaks are raised with
// raise_peak(); each record has one writer at a time.
struct SessionState {
  using Counter = std::atomic<std::uint64_t>;

  std::atomic<std::int64_t> owner_pid{0};  // the first process that made a tensor with PyTorch; 0: none did
  Counter owner_since_ns{0};               // CLOCK_MONOTONIC, which all processes share
  std::atomic<EvictionMethod> eviction_path{EvictionMethod::automatic};  // in force; automatic: not decided yet

  DiskWaits disk_waits;  // of the owner's threads
  Latest<MemoryFigures> memory;
  Latest<GpuFigures> gpu;
  Counter refused_bytes{0};  // the largest tensor that found no room
  Latest<OversizedOperator> oversized;
  Counter unmanaged_peak_bytes{0};  // used by operators, not made by the allocator that we replace

  Counter unmanaged_count{0};  // may exceed the table
  std::array<UnmanagedProcess, kMaxUnmanaged> unmanaged;

  Counter child_warned{0};                         // one notice for all children
  Counter notice_count{0};                         // may exceed the table
  std::array<OnceText<512>, kMaxNotices> notices;  // what the user should know, one sentence each
  OnceText<4096> error;                            // why the session cannot do what it was asked to; ends up on stderr
  std::atomic<std::uint32_t> recorded{0};          // optimizer steps in the trace at record_path; 0: it holds none
  std::atomic<std::uint32_t> plan_recorded{0};     // 1 while the files at blocks_path hold a plan and its trace
  std::atomic<std::uint32_t> journalled{0};        // 1 once the file at journal_path holds the run's journal
  OnceText<4096> not_recorded;                     // why there is no trace, and what was seen instead
  Latest<WhyNoPlan> no_plan;                       // no_optimizer also if nothing moved

  Latest<std::array<CostFigures, kMostCosts>> costs;  // of the dearest tensors; these first
  Counter ssd_read_rate{0}, ssd_write_rate{0};        // bytes per second, as measured in the run; 0: not yet

  History<PlanFigures, kMaxPlans> plans;
  History<IterationFigures, kMaxIterations> iterations;
};

// Every field but the first three and the configuration starts as zero bytes, which is what a fresh memfd holds: it
// stays sparse, and a run of a few iterations costs a few pages.
struct Session {
  std::uint64_t magic = kSessionMagic;
  std::uint32_t version = kSessionVersion;
  std::uint64_t size = sizeof(Session);
  SessionConfig config;
  SessionState state;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<EvictionMethod>::is_always_lock_free);
static_assert(std::is_standard_layout_v<SessionConfig> && std::is_trivially_copyable_v<SessionConfig>);

}  // namespace spillway
