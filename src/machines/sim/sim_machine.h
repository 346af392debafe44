#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/lifetimes.h"
#include "executor/machine.h"
#include "machines/sim/faults.h"
#include "machines/sim/flash.h"
#include "machines/sim/layout.h"
#include "machines/sim/links.h"
#include "memory/pieces.h"
#include "trace/trace.h"

namespace spillway {

// One pass through the trace's kernels.
struct IterationRecord {
  Nanos begin, end;
  std::uint64_t stalled_kernels = 0;
  Nanos hidden;              // so long something moved while a kernel computed
  std::uint64_t faults = 0;  // blocks that a kernel touched while they were on a lower tier
  FlashWork flash = {};      // so far
};

struct SimHardware {
  LinkRates links;
  FaultRates faults;
  std::optional<FlashGeometry> flash;  // of the SSD
};

// A machine with a virtual clock that runs a trace over and over. It plays the program (allocations, kernels that touch
// their blocks in order, frees) and the hardware (moves over modelled links). It decides nothing about residency: it
// knows which blocks are mapped only because the executor's commands said so.
class SimMachine : public Machine {
 public:
  // `placed` says where each block's bytes are at the start; nothing for blocks without bytes. `whole_tensors`: kernels
  // want all of each tensor that they use, not only the bytes they touch. Its kernels have their places in the
  // iteration of `plan`.
  SimMachine(const Trace& trace, const Lifetimes& lifetimes, Layout layout, const SimHardware& hardware,
             const std::vector<std::optional<Tier>>& placed, bool whole_tensors = false, PlanId plan = {});
  SimMachine(const SimMachine&) = delete;
  SimMachine& operator=(const SimMachine&) = delete;

  void submit(std::span<const Command> commands) override;
  Result<Stamped> wait() override;

  // True once all events of an iteration have been delivered; begin_iteration() starts the next.
  bool iteration_over() const;
  void begin_iteration();
  const std::vector<IterationRecord>& iterations() const { return iterations_; }
  // How long each kernel waited after it was ready, the last time.
  const std::vector<Nanos>& waits() const { return waits_; }
  const Layout& layout() const { return layout_; }
  // CHECKs that the flash holds what lies on the SSD, and nothing else; O(blocks and pieces).
  void check_flash() const;

 private:
  enum class Where : std::uint8_t { nowhere, device, host, ssd, moving, in_pieces };
  struct Place {
    Where where = Where::nowhere;
    bool has_copy = false;  // on the SSD, while it is on the device
    bool parked = false;
    friend bool operator==(Place, Place) = default;
  };
  enum class Step : std::uint8_t { gap, ready, touching, computing, over };

  static Where where(Tier tier);
  Place& at(BlockId block);
  Bytes bytes_of(BlockId block) const;
  void put(BlockRange blocks, Place place);
  std::optional<BlockId> absent(BlockId block);
  void allocate(TensorId tensor, bool keeps_bytes = false);
  void free(TensorId tensor);
  void announce_kernel();
  void touch();
  void announce(BlockId first);
  Load load_of(const Move& move) const;
  double flash_time(const Move& move);
  void leave_flash(BlockRange blocks);
  void arrive(BlockRange blocks);
  void finish_kernel();
  void carry_over();
  void look_again(BlockId block);
  void handle(const Move& move);
  void handle(const Populate& populate);
  void handle(const Discard& discard);
  void handle(const Split& split);
  void handle(const Join& join);
  void handle(const Park& park);
  void handle(const Cancel& cancel);
  void handle(const Launch& launch);
  void handle(const Timer& timer);
  void push(Event event) { events_.push_back(std::move(event)); }

  const Trace& trace_;
  const Lifetimes& lifetimes_;
  Layout layout_;
  bool whole_tensors_;
  PlanId plan_;
  FaultRates faults_;
  std::optional<Flash> flash_;
  bool flash_is_full_ = false;
  Links links_;
  std::vector<Place> places_;                                               // by block
  std::unordered_map<BlockId, std::array<Place, kPiecesPerBlock>> pieces_;  // of the split ones
  std::deque<Event> events_;                                                // that happen now
  std::vector<Move> ended_;
  std::set<std::pair<Nanos, std::uint32_t>> timers_;  // by when they are over
  Nanos now_;

  Step step_ = Step::over;
  std::uint32_t kernel_ = 0;
  std::uint32_t serial_ = 0;  // of the current kernel's launch
  Nanos deadline_;            // of the gap or the computation
  Nanos ready_at_;
  std::vector<BlockAccess> accesses_;  // of the current kernel
  std::size_t access_ = 0;             // the next block to touch, as access and place in it
  std::uint32_t in_access_ = 0;
  std::uint32_t in_block_ = 0;  // as piece, of a split one
  struct Announced {
    Nanos handling;            // its part of the time that its service takes
    bool pays_latency = true;  // the first of its service on its way
  };
  std::unordered_map<BlockId, Announced> announced_;  // reported as absent and not arrived yet
  std::vector<IterationRecord> iterations_;
  std::vector<Nanos> waits_;  // by kernel
};

}  // namespace spillway
