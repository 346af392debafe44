#include "hook/planning/planning.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <utility>

#include "machines/cpu/clock.h"
#include "machines/cpu/quiet_thread.h"

namespace spillway {

namespace {

// Whether a figure is not any more, by more than this part of it, what it was.
bool has_changed(double was, double is, double threshold) { return std::abs(is - was) > threshold * was; }

}  // namespace

Planning::~Planning() {
  if (!thread_.joinable()) return;
  pager_.active() ? thread_.join() : thread_.detach();
}

bool Planning::wants(const Recorder::Progress& progress) const {
  if (thread_.joinable() || progress.iteration == 0) return false;
  if (progress.iteration != iteration_) return true;
  if (progress.iteration != followed_iteration_ || progress.repetitions < repetitions_ + least_) return false;
  const MachineModel now = machine();
  const auto differs = [](BytesPerSecond was, BytesPerSecond is) {
    return has_changed(static_cast<double>(was.value), static_cast<double>(is.value), kRateThreshold);
  };
  return has_changed(seconds(planned_sum_), seconds(progress.average), kThreshold) ||
         differs(planned_read_, now.ssd.read) || differs(planned_write_, now.ssd.write);
}

MachineModel Planning::machine() const {
  MachineModel measured = machine_;
  if (const auto rate = pager_.ssd_read()) measured.ssd.read = *rate;
  if (const auto rate = pager_.ssd_write()) measured.ssd.write = *rate;
  return measured;
}

void Planning::submit(RecordedIteration iteration, const Recorder::Progress& progress,
                      const std::function<std::optional<std::uint64_t>(StorageId)>& place_of) {
  if (places_ && followed_iteration_ != progress.iteration) {  // Nobody follows that plan for long any more.
    pager_.give_up(std::exchange(places_, std::nullopt)->apart);
    followed_iteration_ = 0;
  }
  least_ = iteration_ == progress.iteration ? 2 * least_ : kLeastIterations;
  repetitions_ = progress.repetitions;
  iteration_ = progress.iteration;
  planned_sum_ = progress.average;
  PlanningInput input{.iteration = std::move(iteration),
                      .persistent = {},
                      .machine = machine(),
                      .policy = policy_,
                      .given = given_ ? &*given_ : nullptr,
                      .places = places_};
  const Trace& trace = input.iteration.trace;
  Bytes unplanned = kBlockBytes * (kSpareBlocks + pager_.small_blocks());
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t) {
    const Tensor& tensor = trace.tensors[t];
    const bool planned = tensor.persistent && tensor.bytes >= TensorHeap::kLarge;
    input.persistent.push_back(planned ? place_of(input.iteration.storages[t]) : std::nullopt);
    // Replaced while its successor lives: where it will be nobody knows.
    if (tensor.carried_from && tensor.carried_from != TensorId{t} && tensor.bytes >= TensorHeap::kLarge)
      unplanned += tensor.bytes * 2;
  }
  planned_read_ = input.machine.ssd.read;
  planned_write_ = input.machine.ssd.write;
  input.machine.device.memory = excess(kBlockBytes * pager_.device_blocks(), unplanned);
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
  auto plan = plan_run(input, [&](Bytes bytes) { return apart = pager_.set_apart(bytes); });
  planning_time_ = now() - begin;
  plan_.reset();
  error_.clear();
  refused_.clear();
  if (plan) {
    plan_ = std::move(plan->plan);
    refused_ = std::move(plan->refused);
  } else {
    error_ = plan.error().message;
  }
  if (!plan_ && apart) pager_.give_up(*apart);
  done_.store(true, std::memory_order_release);
}

std::optional<Planning::Outcome> Planning::take(const Recorder::Progress& now) {
  if (!done_.exchange(false, std::memory_order_acquire)) return std::nullopt;
  if (thread_.joinable()) thread_.join();
  Outcome outcome{.plan = std::move(plan_),
                  .is_first = followed_iteration_ != iteration_,
                  .planning_time = planning_time_,
                  .error = std::move(error_),
                  .refused = std::move(refused_)};
  if (outcome.plan && now.iteration != iteration_) {
    if (outcome.is_first) pager_.give_up(outcome.plan->places.apart);
    outcome.plan = nullptr;
  }
  if (outcome.is_first) repetitions_ = 0;  // Averages begin anew.
  if (!outcome.plan) return outcome;
  places_ = outcome.plan->places;
  followed_iteration_ = iteration_;
  return outcome;
}

}  // namespace spillway
