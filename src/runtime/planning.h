#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "recorder/recorder.h"
#include "runtime/drift.h"
#include "runtime/pager.h"
#include "runtime/run_planner.h"

namespace spillway {

// Plans in the background, on a thread of its own that touches no managed memory: for an iteration that was not planned
// for yet, and again when the times that a plan was made from have changed. Used by the hook under its lock.
class Planning {
 public:
  // The machine as measured; its device memory is the whole budget. A plan that is given is taken for every iteration
  // that it is for.
  Planning(Pager& pager, MachineModel machine, RunPolicy policy, std::optional<GivenPlan> given)
      : pager_(pager), machine_(std::move(machine)), policy_(policy), given_(std::move(given)) {}
  ~Planning();

  // Whether the recorder's iteration should be planned for now: it was not yet, or things have changed since. False
  // while a plan is being made, and where nothing `has_moved`, unless a plan was given that must be looked at.
  bool wants(const Recorder::Progress& progress, bool has_moved) const;
  // `place_of`: where a storage lies now; nothing if it is gone or not managed. `beside`: the bytes of tensors that
  // have no part in the iteration.
  void submit(RecordedIteration iteration, const Recorder::Progress& progress, Bytes beside,
              const std::function<std::optional<std::uint64_t>(StorageId)>& place_of);
  // Once for each submission: what came of it.
  struct Outcome {
    std::shared_ptr<const Proposal> plan;  // null: `none_needed`, or `error`, or the script does something else now
    bool none_needed = false;              // Paging is as good.
    bool is_first = false;                 // for this iteration
    std::string error;
    std::string refused;  // why the given plan is not followed
  };
  std::optional<Outcome> take(const Recorder::Progress& now);
  // Repetitions are counted anew, too.
  void averages_restarted() { repetitions_ = 0; }
  // Whether it was decided that this iteration needs no plan.
  bool needs_none(const Recorder::Progress& progress) const;
  Pager& pager() { return pager_; }
  bool may_drop() const { return policy_.chooses; }

 private:
  void run(const PlanningInput& input) noexcept;
  MachineModel machine() const;  // with the rates as measured by now
  DriftBasis basis(const Recorder::Progress& progress) const;

  // What was decided stands for so many iterations at least, twice as many each time that it is looked at again: times
  // that go up and down (other programs, checkpoints) must not keep us planning.
  static constexpr std::uint64_t kLeastIterations = 2, kMostIterations = 64;

  Pager& pager_;
  MachineModel machine_;
  RunPolicy policy_;
  std::optional<GivenPlan> given_;
  std::thread thread_;
  std::uint32_t plans_made_ = 0;
  std::uint64_t iteration_ = 0;                               // planned for last; 0: it went before it was decided
  DriftBasis basis_;                                          // of that
  std::uint64_t repetitions_ = 0, least_ = kLeastIterations;  // when that was; until it may be made again
  enum class Decision : std::uint8_t { no_plan, plan, given_plan } decision_ = Decision::no_plan;
  std::optional<BirthPlaces> places_;     // of the plan that was made last
  std::uint64_t followed_iteration_ = 0;  // what it is for
  // The thread's until done_.
  std::unique_ptr<Proposal> plan_;
  std::string error_, refused_;
  std::atomic<bool> done_{false};
};

}  // namespace spillway
