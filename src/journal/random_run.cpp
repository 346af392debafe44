#include "journal/random_run.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace spillway {
namespace {

constexpr std::uint32_t kBlocks = 48, kTensors = 24, kKernels = 8;
constexpr std::uint32_t kFrames = 16, kHostBlocks = 6, kSsdBlocks = 40;

}  // namespace

PageTable RandomRun::table() {
  PageTable table({kBlockBytes * kFrames, kBlockBytes * kHostBlocks, kBlockBytes * kSsdBlocks});
  table.add_blocks(kBlocks, kBlockBytes);
  return table;
}

BlockRange RandomRun::any_blocks() {
  const std::uint32_t count = 1 + below(4);
  return {{below(kBlocks - count)}, count};
}

Adopted RandomRun::any_plan() {
  if (below(4) == 0) return {};
  auto next = std::make_shared<FollowedPlan>();
  ++plan_.value;
  next->id = plan_;
  next->commands.policy = "random";
  next->kernels = kKernels;
  next->births.resize(kKernels);
  for (std::uint32_t tensor = 0; tensor < kTensors; ++tensor) {
    next->homes.push_back(any_blocks());
    next->rows.push_back({next->homes.back(), {{below(kKernels)}}});
    next->births[below(kKernels)].push_back(next->homes.back());
  }
  for (std::uint32_t kernel = 0; kernel < kKernels; ++kernel)
    for (std::uint32_t count = below(4); count > 0; --count) {
      next->commands.evictions.push_back({{below(kTensors)}, {kernel}, below(3) == 0 ? Tier::host : Tier::ssd});
      next->commands.prefetches.push_back({{below(kTensors)}, {kernel}, below(4) == 0});
    }
  return {std::move(next)};
}

// Up to three launches are in flight on a stream.
bool RandomRun::kernel_event(Event& event) {
  const std::uint32_t id = below(3);
  Stream& stream = streams_[id];
  if (!stream.launched) return false;
  const bool in_flight = stream.done != stream.serial;
  if (in_flight && !stream.queued && below(2) == 0) {
    stream.queued = true;
    event = KernelQueued{{{id}, stream.serial}};
    return true;
  }
  if (in_flight && (!stream.queued || stream.serial - stream.done == 3 || below(2) == 0)) {
    event = KernelDone{{{id}, ++stream.done}};
    stream.queued |= stream.done == stream.serial;
    return true;
  }
  accesses_.clear();
  for (std::uint32_t count = below(4); count > 0; --count) {
    const std::uint32_t tensor = below(kTensors);
    if (tensor < tensors_.size() && tensors_[tensor].count > 0)
      accesses_.push_back({tensors_[tensor], {tensor + 1}, below(2) == 0, below(5) == 0});
  }
  const bool waits = below(3) > 0;
  stream = {.serial = stream.serial + 1, .done = stream.done, .launched = !waits, .queued = false};
  event = KernelReady{.launch = {{id}, stream.serial},
                      .kernel = below(3) == 0 ? kNoKernel : KernelId{below(kKernels)},
                      .accesses = accesses_,
                      .execution = {below(kKernels)},
                      .waits = waits,
                      .plan = below(8) == 0 ? PlanId{below(4)} : plan_};
  return true;
}

// False if that kind of event cannot be now.
bool RandomRun::next_event(Event& event) {
  tensors_.resize(kTensors);
  BlockRange& tensor = tensors_[below(kTensors)];
  const TensorId id{static_cast<std::uint32_t>(&tensor - tensors_.data())};
  switch (below(8)) {
    case 0:
      if (tensor.count == 0) {
        tensor = any_blocks();
        event = Allocated{id, tensor, {id.value + 1}};
      } else {
        event = Freed{id, std::exchange(tensor, {})};
      }
      return true;
    case 1:
      if (tensor.count == 0) return false;
      event = Faulted{{below(3)}, {{tensor.first.value + below(tensor.count)}, 1}, below(2) == 0};
      return true;
    case 2:
    case 3:
    case 4:
      return kernel_event(event);
    default: {
      if (flights_.empty()) return false;
      const auto flight = flights_.begin() + below(static_cast<std::uint32_t>(flights_.size()));
      const MoveId move = *flight;
      flights_.erase(flight);
      event = below(16) > 0 ? Event{MoveDone{move}} : Event{MoveFailed{move, below(2) == 0}};
      return true;
    }
  }
}

void RandomRun::play(ObservedExecutor& executor, std::uint32_t events) {
  std::vector<Command> commands;
  while (events > 0 && !executor.executor().failure()) {
    Event event;
    if (below(64) == 0)
      event = any_plan();
    else if (!next_event(event))
      continue;
    --events;
    at_ += Nanos{below(5'000)};
    executor.on({at_, event}, commands);
    for (const Command& command : commands) {
      if (const auto* move = std::get_if<Move>(&command)) flights_.push_back(move->id);
      if (const auto* launch = std::get_if<Launch>(&command)) streams_[launch->launch.stream.value].launched = true;
    }
  }
}

JournalledExecutor::JournalledExecutor(JournalFile& file, ExecutorOptions options, LooksAhead online)
    : journal_(
          file,
          {.table = RandomRun::table(), .options = options, .online = online.make, .online_device = online.device}),
      executor_(RandomRun::table(), options, online.make != nullptr ? online.make(online.device, {}) : nullptr,
                {&journal_}) {}

}  // namespace spillway
