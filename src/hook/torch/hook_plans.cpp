#include "hook/torch/hook.h"

#include <string>
#include <unordered_set>
#include <utility>

#include "hook/torch/command_name.h"
#include "runtime/save_proposed.h"
#include "session/hook_side.h"

namespace spillway {

// Between two optimizer steps: a plan that is ready is taken up where an iteration starts, or one is asked for.
void Hook::plan_ahead() {
  Planning* planning = memory_->planning();
  if (planning == nullptr || !phases_.has_optimizer()) return;
  const Recorder::Progress at = recorder_->progress();
  if (!plan_is_saved_) save_plan_followed();
  if (follower_) follower_->anchor(at.iteration == plan_->iteration ? at.steps_done : std::nullopt);
  if (planning->may_drop()) try_plan(at);
  // While none is known the one planned for may come back: another optimizer's turn may just be overdue.
  const bool iteration_starts = at.iteration != 0 && at.steps_done.value_or(0) == 0;
  if (const auto outcome = iteration_starts ? planning->take(at) : std::nullopt) {
    planning_error_ = outcome->error;
    if (!outcome->error.empty())
      add_notice(session_, std::string("the run goes on ") +
                               (follower_ && !outcome->is_first ? "with the plan that it has" : "without a plan") +
                               ", since planning failed: " + outcome->error);
    const bool follows_given = outcome->plan && outcome->plan->figures.given != 0;
    if (!outcome->refused.empty() && !trial_.is_dropped())
      add_notice(session_, "the run plans by itself: " + outcome->refused);
    if (follows_given && given_was_refused_)
      add_notice(session_, "the given plan is followed after all: the script's iteration has become the one it is for");
    given_was_refused_ = !follows_given && (given_was_refused_ || !outcome->refused.empty());
    take_up(*outcome);
  }
  const Recorder::Progress progress = recorder_->progress();  // A plan taken up restarts averages.
  if (trial_.is_dropped() || !planning->wants(progress, something_moved())) return;
  RecordedIteration iteration = *recorder_->iteration();
  iteration.trace.source = kTraceSource;
  name_tensors(iteration);
  const std::unordered_set<StorageId> planned(iteration.storages.begin(), iteration.storages.end());
  std::unordered_map<StorageId, std::uintptr_t> begins;
  Bytes beside;
  for (const Storages::Storage& storage : storages_.all()) {
    begins.emplace(storage.id, storage.begin);
    if (!planned.contains(storage.id)) beside += Bytes{storage.bytes};
  }
  planning->submit(std::move(iteration), progress, beside, [&](StorageId id) -> std::optional<std::uint64_t> {
    const auto begin = begins.find(id);
    if (begin == begins.end()) return std::nullopt;
    const auto* memory = reinterpret_cast<const void*>(begin->second);
    return memory_->contains(memory) ? std::optional(planning->pager().place_of(memory)) : std::nullopt;
  });
}

void Hook::take_up(const Planning::Outcome& outcome) {
  if (!outcome.plan && !outcome.is_first && !outcome.none_needed) return;  // The one that there is goes on.
  if (trial_.is_dropped() && !(outcome.plan && outcome.plan->figures.given != 0)) return;  // That was final.
  plan_ = outcome.plan;
  if (!plan_) {
    trial_.none_is_followed();
    return stop_following(outcome.is_first ? PlanEnd::other_iteration : PlanEnd::not_needed);
  }
  trial_.plan_begins(plan_->figures.given != 0);
  if (outcome.is_first) follower_.reset();
  follow_plan();
}

void Hook::try_plan(const Recorder::Progress& progress) {
  if (trial_.step_ended(progress, now(), memory_->figures().stall)) stop_following(PlanEnd::slower);
}

void Hook::stop_following(PlanEnd why) {
  if (follower_) end_plan(session_, why);
  follower_.reset();
  iterations_.follows(0, 0);
  memory_->planning()->pager().adopt(nullptr);
}

void Hook::follow_plan() {
  if (!follower_) {
    follower_.emplace(plan_->signatures, plan_->anchors);
    recorder_->restart_averages();  // From here on kernels have what they use, and run beside more moves.
    memory_->planning()->averages_restarted();
  }
  iterations_.follows(plan_->kernels_with_data, plan_->anchors.size());
  add_plan(session_, plan_->figures);
  Pager& pager = memory_->planning()->pager();
  pager.adopt({plan_, &plan_->run.followed});
  disk_work_.leave([&pager, plan = plan_] { pager.make_room_for(plan->run.followed); });
  plan_is_saved_ = false;
}

WhyNoPlan Hook::why_not_planned() {
  if (!planning_error_.empty()) return {NoPlan::failed, planning_error_};
  if (!phases_.has_optimizer()) return {NoPlan::no_optimizer, {}};
  const Recorder::Progress progress = recorder_->progress();
  if (progress.iteration == 0) {
    const auto trace = recorder_->finish();
    return {NoPlan::no_iteration, trace ? "no iteration has repeated itself" : trace.error().message};
  }
  if (plan_) return {NoPlan::not_followed, {}};
  return {memory_->planning()->needs_none(progress) ? NoPlan::not_needed : NoPlan::not_made, {}};
}

// Once a step has followed it: of a script that ends before, the plan before it is the last that was followed.
void Hook::save_plan_followed() {
  plan_is_saved_ = true;
  const std::string stem = session_.config.blocks_path.data();
  if (stem.empty()) return;
  disk_work_.leave([this, stem, plan = plan_] {
    const DiskWait wait = record_wait();
    session_.state.plan_recorded = 0;
    if (const auto saved = save_proposed(*plan, name_of_command() + ", rows of blocks", plan_files(stem)); !saved)
      return add_notice(session_, "the plan that is followed was not saved: " + saved.error().message);
    session_.state.plan_recorded = 1;
  });
}

}  // namespace spillway
