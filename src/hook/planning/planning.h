#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "hook/pager/pager.h"
#include "hook/planning/run_planner.h"

namespace spillway {

// Plans in the background, on a thread of its own that touches no managed memory. Used by the hook under its lock.
class Planning {
 public:
  // The machine as measured; its device memory is the whole budget.
  Planning(Pager& pager, MachineModel machine, std::string policy)
      : pager_(pager), machine_(std::move(machine)), policy_(std::move(policy)) {}
  ~Planning();

  // True as long as nothing has been submitted.
  bool is_idle() const { return !thread_.joinable(); }
  // `place_of`: where a storage lies now; nothing if it is gone or not managed.
  void submit(RecordedIteration iteration, const std::function<std::optional<std::uint64_t>(StorageId)>& place_of);
  // Once, when a plan is ready.
  std::unique_ptr<ProposedPlan> take();
  Pager& pager() { return pager_; }
  Nanos planning_time() const { return planning_time_; }  // of the plan that was taken
  std::string take_error();                               // once, why there is none; empty if none is needed

 private:
  void run(const PlanningInput& input) noexcept;

  Pager& pager_;
  MachineModel machine_;
  std::string policy_;
  std::thread thread_;
  std::unique_ptr<ProposedPlan> plan_;  // the thread's until done_
  std::string error_;
  Nanos planning_time_;
  std::atomic<bool> done_{false};
};

}  // namespace spillway
