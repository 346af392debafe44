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
#include "machines/sim/pool.h"
#include "machines/sim/sim_program.h"
#include "memory/pieces.h"
#include "trace/trace.h"

namespace spillway {

struct SimHardware {
  LinkRates links;
  FaultRates faults;
  std::optional<FlashGeometry> flash;  // of the SSD
};

// A machine with a virtual clock that runs traces over and over. It plays the programs (allocations, kernels that touch
// their blocks in order, frees) and the hardware (moves over modelled links). It decides nothing about residency: it
// knows which blocks are mapped only because the executor's commands said so.
//
// Kernels of several jobs that compute at a time share the device by their jobs' weights, and so take longer. Time that
// hosts need between kernels is not shared.
class SimMachine : public Machine {
 public:
  // `placed` says where each block's bytes are at the start; nothing for blocks without bytes. `whole_tensors`: kernels
  // want all of each tensor that they use, not only the bytes they touch. Its kernels have their places in the
  // iteration of `plan`. In a pool tensors lie where PyTorch's allocator puts them, and the layout is that of a pool.
  // Where the dead stay, nobody is told what is dead: the pool's blocks are alive for good.
  enum class Tensors : std::uint8_t { in_their_own, in_pool, in_pool_dead_stays };
  SimMachine(const Trace& trace, const Lifetimes& lifetimes, Layout layout, const SimHardware& hardware,
             const std::vector<std::optional<Tier>>& placed, bool whole_tensors = false, PlanId plan = {},
             Tensors tensors = Tensors::in_their_own);
  SimMachine(const SimMachine&) = delete;
  SimMachine& operator=(const SimMachine&) = delete;

  void submit(std::span<const Command> commands) override;
  Result<Stamped> wait() override;

  // ---- One job
  // True once all events of an iteration have been delivered; begin_iteration() starts the next.
  bool iteration_over() const;
  void begin_iteration();
  const std::vector<IterationRecord>& iterations() const { return programs_.front().iterations; }
  // How long each kernel waited after it was ready, the last time.
  const std::vector<Nanos>& waits() const { return programs_.front().waits; }
  // How long something moved while each computed, the last time.
  const std::vector<Nanos>& hidden() const { return programs_.front().hidden; }
  const Layout& layout() const { return programs_.front().job.layout; }

  // ---- Several: each begins when it arrives, and leaves after its iterations.
  SimMachine(std::vector<SimJob> jobs, std::vector<Bytes> block_bytes, const SimHardware& hardware, bool whole_tensors);
  const std::vector<SimProgram>& programs() const { return programs_; }
  bool all_have_left() const;
  // Whether a job has arrived, ended its first iteration or left since this was asked last.
  bool has_changed() { return std::exchange(has_changed_, false); }
  // The plan that has the kernels from now on.
  void follow(PlanId plan) { plan_ = plan; }
  // CHECKs that the flash holds what lies on the SSD, and nothing else; O(blocks and pieces).
  void check_flash() const;

 private:
  enum class Where : std::uint8_t { nowhere, device, host, ssd, moving, in_pieces };
  struct Place {
    Where where = Where::nowhere;
    bool has_copy = false;  // on the SSD, while it is on the device
    bool parked = false;
    bool has_holes = false;  // on the SSD, and some of its pieces were never written
    friend bool operator==(Place, Place) = default;
  };
  using Step = SimProgram::Step;

  static Where where(Tier tier);
  Place& at(BlockId block) { return is_piece(block) ? at_piece(block) : places_[block.value]; }
  Place& at_piece(BlockId piece);
  Bytes bytes_of(BlockId block) const { return is_piece(block) ? bytes_of_piece(block) : block_bytes_[block.value]; }
  Bytes bytes_of_piece(BlockId piece) const;
  // The whole block is there, and whoever touches it goes on at once.
  bool is_there(BlockId block) const {
    return places_[block.value].where == Where::device && !places_[block.value].parked;
  }
  void put(BlockRange blocks, Place place);
  SimProgram& owner_of(BlockId block);
  SimProgram* next_in_time(std::optional<Nanos>& next);
  Nanos end_of_work(const SimProgram& program) const;
  double computing_weight() const;
  void compute(Nanos passed);
  void go_on(SimProgram& program);
  void go_on_touching();
  void arrive(SimProgram& program);
  void leave(SimProgram& program);
  void begin_iteration(SimProgram& program);
  std::optional<BlockId> absent(SimProgram& program, BlockId block);
  void allocate(SimProgram& program, TensorId tensor);
  void tell_of(const SimProgram& program, TensorId tensor, bool keeps_bytes);
  void free(const SimProgram& program, TensorId tensor);
  void announce_kernel(SimProgram& program);
  void touch(SimProgram& program);
  void announce(SimProgram& program, BlockId first);
  void announce_first_touches(SimProgram& program, BlockId first);
  Load load_of(const Move& move);
  double flash_time(const Move& move);
  void leave_flash(BlockRange blocks);
  void arrive(BlockRange blocks);
  void finish_kernel(SimProgram& program);
  void carry_over(SimProgram& program);
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

  std::vector<SimProgram> programs_;
  std::vector<Bytes> block_bytes_;
  std::vector<std::uint32_t> owners_;  // by block: its job
  bool has_changed_ = false;
  bool whole_tensors_;
  PlanId plan_;
  std::optional<Pool> pool_;  // of the only job
  bool dead_stays_ = false;
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
};

}  // namespace spillway
