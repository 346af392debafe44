#include "hook/planning/planning.h"

#include <sys/resource.h>
#include <unistd.h>

#include "machines/cpu/clock.h"
#include "machines/cpu/quiet_thread.h"

namespace spillway {
namespace {

// Blocks of the device that no plan counts on: what is on its way takes a place at both of its ends.
constexpr std::uint32_t kSpareBlocks = 8;

}  // namespace

Planning::~Planning() {
  if (!thread_.joinable()) return;
  pager_.active() ? thread_.join() : thread_.detach();
}

void Planning::submit(RecordedIteration iteration,
                      const std::function<std::optional<std::uint64_t>(StorageId)>& place_of) {
  PlanningInput input{.iteration = std::move(iteration), .persistent = {}, .machine = machine_, .policy = policy_};
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
  input.machine.device.memory = excess(kBlockBytes * pager_.device_blocks(), unplanned);
  auto thread = quiet_thread("spillway-plan", [this, input = std::move(input)] { run(input); });
  if (thread) thread_ = *std::move(thread);
}

void Planning::run(const PlanningInput& input) noexcept {
  // Training needs the cores more.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 10);
  const Nanos begin = now();
  std::optional<BlockRange> apart;
  auto plan = plan_run(input, [&](Bytes bytes) { return apart = pager_.set_apart(bytes); });
  planning_time_ = now() - begin;
  if (plan)
    plan_ = *std::move(plan);
  else
    error_ = plan.error().message;
  if (!plan_ && apart) pager_.give_up(*apart);
  done_.store(true, std::memory_order_release);
}

std::string Planning::take_error() {
  return done_.load(std::memory_order_acquire) ? std::exchange(error_, {}) : std::string();
}

std::unique_ptr<ProposedPlan> Planning::take() {
  return done_.load(std::memory_order_acquire) ? std::move(plan_) : nullptr;
}

}  // namespace spillway
