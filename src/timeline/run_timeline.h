#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "executor/machine.h"
#include "memory/tier.h"
#include "trace/trace.h"

namespace spillway {

// Why a kernel that was ready did not start. Of several reasons the one that took longest.
enum class Stall : std::uint8_t {
  none,
  asked_late,     // nobody had asked for the tensor before the kernel wanted it
  on_its_way,     // it had been asked for, and its bytes still moved
  behind_others,  // it had been asked for, and other transfers came first
  no_room,        // something had to leave the device before
  other,          // no transfer explains it: a move that the plan makes it await, or faults that are handled
};

// One kernel that ran. Times count from the iteration's beginning.
struct PlayedKernel {
  std::string name = {};
  KernelId kernel = {};  // of the trace
  Phase phase = Phase::other;
  bool is_replay = false;
  Nanos ready{}, start{}, end{};
  Stall stall = Stall::none;                // of the time from ready to start
  std::optional<TensorId> waited_for = {};  // what came last
  std::string cause = {};                   // the stall in words
  std::vector<TensorId> reads = {}, writes = {};
  // Of real runs only, and in no file.
  std::uint32_t thread = 0;  // kernels of several may overlap
  std::uint32_t faults = 0;  // while it ran: it waited for them all the same, and the sum stands before its start

  Nanos wait() const { return start - ready; }
  friend bool operator==(const PlayedKernel&, const PlayedKernel&) = default;
};

// Bytes of one tensor that went from one tier to another in one go. One of the tiers is the device.
struct PlayedTransfer {
  std::optional<TensorId> tensor = {};  // if it is known; of small tensors that share a block, one
  Bytes bytes = {};
  Tier from{}, to{};
  Urgency urgency{};
  Nanos queued{}, begin{}, end{};  // asked for; its turn on the link; all there
  std::uint32_t moves = 1;         // in so many commands
  bool copied = true;              // false: the tier below had the same bytes, nothing moved
  bool cancelled = false;          // called back before it ended
  bool from_before = false;        // under way when the iteration began: what was before is cut off
  bool goes_on = false;            // under way when the iteration ended

  friend bool operator==(const PlayedTransfer&, const PlayedTransfer&) = default;
};

struct PlayedTensor {
  std::string name;
  Bytes bytes;
  TensorKind kind = TensorKind::other;
  PerTier<Bytes> at_start{};  // where its bytes are when the iteration begins

  friend bool operator==(const PlayedTensor&, const PlayedTensor&) = default;
};

// A tensor is made, or freed.
struct PlayedLife {
  Nanos at;
  TensorId tensor;
  bool born = false;

  friend bool operator==(const PlayedLife&, const PlayedLife&) = default;
};

// Bytes on each tier from this moment on. What is on its way counts on both its tiers.
struct TierLevel {
  Nanos at;
  PerTier<Bytes> bytes;

  friend bool operator==(const TierLevel&, const TierLevel&) = default;
};

// Something that pictures name at its moment: an iteration begins, a plan is taken up.
struct PlayedMark {
  Nanos at;
  std::string text;

  friend bool operator==(const PlayedMark&, const PlayedMark&) = default;
};

// What happened in one iteration, or in some of a real run. A value: where it comes from a file, every id is within its
// list, and times ascend.
struct RunTimeline {
  std::string trace_name = {}, trace_hash = {};
  std::string policy = {}, machine = {};  // empty: all memory that it wants, nothing moves
  bool steady = true;                     // the iteration before was the same
  Nanos iteration{}, ideal{};
  PerTier<std::optional<Bytes>> capacity{};  // nothing: without limit
  PerTier<Bytes> peak{};                     // within this iteration
  std::vector<PlayedTensor> tensors = {};
  std::vector<PlayedKernel> kernels = {};      // in the order in which they ran
  std::vector<PlayedTransfer> transfers = {};  // by begin
  std::vector<PlayedLife> lives = {};          // by time
  std::vector<TierLevel> levels = {};          // by time; left out: changes that no picture would show (kLevelSteps)
  // Not of simulated iterations, and in no file.
  std::string heading = {};             // what is shown, as words behind the trace's name; empty: see heading_of()
  std::vector<std::string> notes = {};  // sentences: what else one should know
  std::uint64_t iterations = 1;         // that are shown; 0: what is shown is none
  bool shows_waits = true;              // false: kernels stand as if none waited
  std::vector<PlayedMark> marks = {};   // by time

  friend bool operator==(const RunTimeline&, const RunTimeline&) = default;
};

// Levels are told apart in so many steps of a tier's peak.
inline constexpr std::uint64_t kLevelSteps = 2000;
// The first and last level, and each that is a step or more away from the one that was kept before it.
std::vector<TierLevel> thinned(const std::vector<TierLevel>& levels, const PerTier<Bytes>& peak);

// Chunks of one tensor that follow each other on one way without a pause are one transfer, but for one that goes on:
// its bytes have not come yet. `ended` is by end.
std::vector<PlayedTransfer> merged(const std::vector<PlayedTransfer>& ended);

// "g10 on a100", if it has no heading of its own.
std::string heading_of(const RunTimeline& timeline);

// So much time the spans (from, to) cover together.
Nanos covered(std::vector<std::pair<Nanos, Nanos>> spans);

// Says of each kernel that waited why, by the transfers. They and the kernels' times must be there.
void explain_stalls(RunTimeline& timeline);

// The iteration of a trace that has all memory it wants: kernels one after the other, tensors alive on the device.
RunTimeline unlimited_timeline(const Trace& trace, const std::string& hash);

// The words of the file format.
std::string_view to_text(Stall stall);
std::string_view to_text(Urgency urgency);

}  // namespace spillway
