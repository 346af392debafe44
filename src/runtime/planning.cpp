#include "runtime/planning.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "machines/cpu/quiet_thread.h"
#include "machines/real/clock.h"

namespace spillway {

Planning::~Planning() {
  if (!thread_.joinable()) return;
  pager_.active() ? thread_.join() : thread_.detach();
}

bool Planning::wants(const Recorder::Progress& progress, bool has_moved) const {
  if (thread_.joinable() || done_ || progress.iteration == 0) return false;
  if (progress.iteration != iteration_) return has_moved || given_;
  if (decision_ == Decision::given_plan || !has_moved) return false;
  return progress.repetitions >= repetitions_ + least_ && has_drifted(basis_, basis(progress));
}

bool Planning::needs_none(const Recorder::Progress& progress) const {
  return !thread_.joinable() && progress.iteration == iteration_ && decision_ == Decision::no_plan;
}

MachineModel Planning::machine() const { return machine_.with_rates(pager_.ssd_read(), pager_.ssd_write()); }

DriftBasis Planning::basis(const Recorder::Progress& progress) const {
  const MachineModel now = machine();
  return {.sum = progress.average, .ssd_read = now.ssd.read, .ssd_write = now.ssd.write};
}

void Planning::submit(RecordedIteration iteration, const Recorder::Progress& progress, Bytes beside,
                      const std::function<std::optional<std::uint64_t>(StorageId)>& place_of) {
  CHECK(!thread_.joinable() && progress.iteration != 0);
  CHECK(iteration.storages.size() == iteration.trace.tensors.size());
  if (places_ && followed_iteration_ != progress.iteration) {  // Nobody follows that plan for long any more.
    pager_.end_apart(std::exchange(places_, std::nullopt)->apart);
    followed_iteration_ = 0;
  }
  least_ = iteration_ == progress.iteration ? std::min(2 * least_, kMostIterations) : kLeastIterations;
  repetitions_ = progress.repetitions;
  iteration_ = progress.iteration;
  basis_ = basis(progress);
  PlanningInput input{.id = {++plans_made_},
                      .iteration = std::move(iteration),
                      .machine = machine(),
                      .budget = pager_.block_bytes() * pager_.device_blocks(),
                      .block_bytes = pager_.block_bytes(),
                      .policy = policy_,
                      .given = given_ ? &*given_ : nullptr,
                      .places = places_};
  const Trace& trace = input.iteration.trace;
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t) {
    const Tensor& tensor = trace.tensors[t];
    const bool planned = tensor.persistent && tensor.bytes >= TensorHeap::kLarge;
    input.persistent.push_back(planned ? place_of(input.iteration.storages[t]) : std::nullopt);
  }
  input.unplanned = pager_.block_bytes() * pager_.small_blocks() + spare_memory(pager_.block_bytes());
  input.machine.device.memory = excess(input.budget, input.unplanned);
  // What nobody uses has left the device first, for host memory while that had room, and stays there.
  const Bytes stays = std::min(beside, pager_.stats().held[Tier::host]);
  input.machine.host.memory = excess(input.machine.host.memory, stays);
  auto thread = quiet_thread("spillway-plan", [this, input = std::move(input)] { run(input); });
  if (thread) {
    thread_ = *std::move(thread);
  } else {
    error_ = thread.error().message;
    done_ = true;
  }
}

void Planning::run(const PlanningInput& input) noexcept {
  // Training needs the cores more.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 10);
  const Nanos begin = now();
  std::optional<BlockRange> apart;
  const auto plan_within_memory = [&]() -> Result<PlanningResult> {
    try {
      return plan_run(input, [&](Bytes bytes) { return apart = pager_.set_apart(bytes); });
    } catch (const std::bad_alloc&) {  // A limit of the script's (ulimit -v); it need not end for want of a plan.
      return fail(Errc::unavailable, "there is no memory to plan with");
    }
  };
  auto plan = plan_within_memory();
  plan_.reset();
  error_.clear();
  refused_.clear();
  if (plan) {
    plan_ = std::move(plan->plan);
    if (plan_) plan_->figures.planning = now() - begin;
    refused_ = std::move(plan->refused);
  } else {
    error_ = plan.error().message;
  }
  CHECK(!plan_ || apart || input.places);  // What it makes has addresses of its own.
  if (!plan_ && apart) pager_.end_apart(*apart);
  done_.store(true, std::memory_order_release);
}

std::optional<Planning::Outcome> Planning::take(const Recorder::Progress& now) {
  if (!done_.exchange(false, std::memory_order_acquire)) return std::nullopt;
  if (thread_.joinable()) thread_.join();
  Outcome outcome{.plan = std::move(plan_),
                  .is_first = followed_iteration_ != iteration_,
                  .error = std::move(error_),
                  .refused = std::move(refused_)};
  CHECK(!outcome.plan || outcome.error.empty());
  if (now.iteration != iteration_) {
    if (outcome.plan && outcome.is_first) pager_.end_apart(outcome.plan->places.apart);
    outcome.plan = nullptr;
    iteration_ = 0;
    return outcome;
  }
  outcome.none_needed = !outcome.plan && outcome.error.empty();
  if (outcome.plan) {
    places_ = outcome.plan->places;
    followed_iteration_ = iteration_;
    decision_ = outcome.plan->figures.given != 0 ? Decision::given_plan : Decision::plan;
  } else if (outcome.is_first || outcome.none_needed) {
    decision_ = Decision::no_plan;
  }
  return outcome;
}

}  // namespace spillway
