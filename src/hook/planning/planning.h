#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "hook/pager/pager.h"
#include "hook/planning/run_planner.h"
#include "hook/recorder/recorder.h"
#include "policies/policies.h"

namespace spillway {

// Plans in the background, on a thread of its own that touches no managed memory: for an iteration that was not planned
// for yet, and again when the times that a plan was made from have changed. Used by the hook under its lock.
class Planning {
 public:
  // The machine as measured; its device memory is the whole budget. A plan that is given is taken for every iteration
  // that it is for.
  Planning(Pager& pager, MachineModel machine, std::string policy, std::optional<GivenPlan> given)
      : pager_(pager), machine_(std::move(machine)), policy_(std::move(policy)), given_(std::move(given)) {}
  ~Planning();

  // Whether the recorder's iteration should be planned for now. False while a plan is being made.
  bool wants(const Recorder::Progress& progress) const;
  // `place_of`: where a storage lies now; nothing if it is gone or not managed.
  void submit(RecordedIteration iteration, const Recorder::Progress& progress,
              const std::function<std::optional<std::uint64_t>(StorageId)>& place_of);
  // Once for each submission: what came of it.
  struct Outcome {
    std::shared_ptr<const ProposedPlan>
        plan;               // null: none is needed, or `error`, or the script does something else now
    bool is_first = false;  // for this iteration
    Nanos planning_time;
    std::string error;
    std::string refused;  // why the given plan is not followed
  };
  std::optional<Outcome> take(const Recorder::Progress& now);
  Pager& pager() { return pager_; }
  // Whether a plan made here is only one way to run: nobody has asked for its policy.
  bool may_give_up() const { return policy_ == kAuto; }

 private:
  void run(const PlanningInput& input) noexcept;
  // With the rates as measured by now.
  MachineModel machine() const;

  // A plan stands for so many iterations at least, twice as many each time that it is made again: times that go up and
  // down (other programs, checkpoints) must not keep us planning.
  static constexpr std::uint64_t kLeastIterations = 2;
  // So much may the sum of all times change (TENSILE section IV-E: |s' - s| / s).
  static constexpr double kThreshold = 0.05;
  // And so much the SSD's rates: those of a probe, or of few moves, are not those of a planned iteration.
  static constexpr double kRateThreshold = 0.25;

  Pager& pager_;
  MachineModel machine_;
  std::string policy_;
  std::optional<GivenPlan> given_;
  std::thread thread_;
  std::uint64_t iteration_ = 0;                               // planned for last
  Nanos planned_sum_;                                         // of the times that the plan was made from
  BytesPerSecond planned_read_, planned_write_;               // the SSD's rates that it was made from
  std::uint64_t repetitions_ = 0, least_ = kLeastIterations;  // when that was; until it may be made again
  std::optional<PlannedPlaces> places_;                       // of the plan that is followed
  std::uint64_t followed_iteration_ = 0;                      // what it is for
  // The thread's until done_.
  std::unique_ptr<ProposedPlan> plan_;
  std::string error_, refused_;
  Nanos planning_time_;
  std::atomic<bool> done_{false};
};

}  // namespace spillway
