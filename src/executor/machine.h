#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "executor/followed_plan.h"
#include "memory/tier.h"

namespace spillway {

// One kernel from when it is ready until it is done. A stream numbers its launches, so that those in flight on it
// differ: several may be, and they are queued and done in their order.
struct LaunchId {
  StreamId stream;
  std::uint32_t serial = 0;
  friend constexpr auto operator<=>(LaunchId, LaunchId) = default;
};

// ---- What the machine tells --------------------------------------------------------------------------------------

struct Adopted {  // This plan is followed from the next kernel on; null: none is.
  std::shared_ptr<const FollowedPlan> plan;
};

struct BlockAccess {
  BlockRange blocks;
  TensorLabel tensor{};
  bool writes = false;
  bool sparse = false;  // touches some of the blocks, nobody knows beforehand which
};

struct Allocated {  // A tensor lives in these blocks from now on. Blocks may be shared with other tensors' ends.
  TensorId tensor;
  BlockRange blocks;
  TensorLabel label{};
  bool keeps_bytes = false;  // Another tensor's are its from now on: simulated iterations begin so.
};
// The tensor is dead: nobody reads its bytes again. Where kernels cannot fault, no launch uses them that is not done.
struct Freed {
  TensorId tensor;
  BlockRange blocks;
};
// The stream's next kernel wants to start: the one before it has been queued. `accesses` is valid during the call only.
struct KernelReady {
  LaunchId launch;
  KernelId kernel;  // its place in the iteration of the plan below, or kNoKernel
  std::span<const BlockAccess> accesses;
  ExecutionId execution{};
  bool waits = true;  // false: it has started, since all was there, and no Launch answers
  PlanId plan{};
};
// The machine has it, and it will run without anything more from the executor. Where nobody tells this, it was queued
// when it is done.
struct KernelQueued {
  LaunchId launch;
};
struct KernelDone {  // The device has run it: it uses its blocks no longer.
  LaunchId launch;
};
inline constexpr StreamId kNobody{UINT32_MAX};
// The stream waits for these blocks, which are not mapped; of a split one, for a piece. Where it needs several at once
// (launches), it tells of those that are there, too: they stay. kNobody: a launch holds them, so they are needed, or
// could not be dropped.
struct Faulted {
  StreamId stream;
  BlockRange blocks;
  bool anew = false;  // what the stream has waited for before it needs no longer: another launch begins
  // A first touch of one block, and so many blocks behind it are touched for the first time right after it: they may
  // get their frames together. Those that do not are told again, one by one.
  std::uint32_t touched_next = 0;
};
struct MoveDone {
  MoveId move;
};
struct MoveFailed {  // The bytes are still where they were.
  MoveId move;
  bool cancelled = false;  // called back, or refused for the moment: no fault of the tier, and may be asked again
};
struct Touched {  // Somebody has touched a block since it was parked, and it is on its place again.
  BlockId block;
};
struct Elapsed {  // This timer's time is over.
  std::uint32_t timer;
};
using Event = std::variant<Allocated, Freed, KernelReady, KernelDone, Faulted, MoveDone, MoveFailed, KernelQueued,
                           Adopted, Touched, Elapsed>;
struct Stamped {
  Nanos at;
  Event what;
};

// ---- What the executor asks --------------------------------------------------------------------------------------

// Smaller is more urgent (G10 section 4.5: page faults have the highest priority).
enum class Urgency : std::uint8_t { fault, need, plan };

// Copies the blocks' bytes to another tier and gives up the place where they were. All blocks are in the same state.
// One of the tiers is the device.
struct Move {
  MoveId id;
  BlockRange blocks;
  Tier from, to;
  Urgency urgency;
  bool first_chunk = true;  // false: it continues the move before it on this link, whose latency is paid
  // Up: the lower copy stays. Down: such a copy is still there, and no kernel has written since; what the machine finds
  // to be the same all the same need not be copied. A move down that fails gives the copy up.
  bool clean = false;
};
// Maps frames without contents at once: the first touch of new blocks. No event answers it.
struct Populate {
  BlockRange blocks;
};
// Gives up the copy on that tier without moving it. No event answers it; but a dead piece that cannot be taken off the
// device is told as a fault of kNobody before anything else is told.
struct Discard {
  BlockRange blocks;
  Tier tier;
};
// See Note [Pieces]. From now on faults on the block are told of its pieces, and moves of those follow; until Join,
// when all of them are on the SSD. Whoever waits for the block or for a piece of it looks again. No event answers
// these.
struct Split {
  BlockId block;
};
struct Join {
  BlockId block;
};
// Lets the kernel go.
struct Launch {
  LaunchId launch;
};
// Undo a move from the device that is in flight: the blocks become mapped again. MoveFailed answers, or MoveDone if it
// was too late.
struct Cancel {
  MoveId move;
};
// The block may be a victim soon: it stays on the device, and the machine tells whether somebody touches it before.
// Only a hint: a machine may do nothing, and whoever touches the block goes on at once.
struct Park {
  BlockId block;
};
// Elapsed answers after that time. For plans whose commands have delays, which only simulations follow.
struct Timer {
  std::uint32_t timer;
  Nanos delay;
};
using Command = std::variant<Launch, Move, Populate, Discard, Cancel, Split, Join, Park, Timer>;

// The one seam between deciding and doing. Implemented by sim, cpu and cuda. Used by one thread only.
class Machine {
 public:
  virtual ~Machine() = default;
  virtual void submit(std::span<const Command> commands) = 0;  // Never blocks; in order.
  virtual Result<Stamped> wait() = 0;                          // Times never go backwards.
};

}  // namespace spillway
