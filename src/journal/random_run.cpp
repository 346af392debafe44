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

void RandomRun::adopt(JournalledExecutor& executor) {
  auto next = std::make_unique<Adoption>();
  if (below(4) > 0) {
    next->plan.policy = "random";
    next->kernels = kKernels;
    next->births.resize(kKernels);
    for (std::uint32_t tensor = 0; tensor < kTensors; ++tensor) {
      next->homes.push_back(any_blocks());
      next->rows.push_back({next->homes.back(), {{below(kKernels)}}});
      next->births[below(kKernels)].push_back(next->homes.back());
    }
    for (std::uint32_t kernel = 0; kernel < kKernels; ++kernel)
      for (std::uint32_t count = below(4); count > 0; --count) {
        next->plan.evictions.push_back({{below(kTensors)}, {kernel}, below(3) == 0 ? Tier::host : Tier::ssd});
        next->plan.prefetches.push_back({{below(kTensors)}, {kernel}, below(4) == 0});
      }
  }
  executor.adopt(next->plan, next->kernels, next->iteration());
  adopted_ = std::move(next);
}

bool RandomRun::kernel_event(Event& event) {
  const std::uint32_t id = below(3);
  Stream& stream = streams_[id];
  if (stream.ready && !stream.launched) return false;
  if (stream.ready) {
    stream = {};
    event = KernelDone{{id}};
    return true;
  }
  accesses_.clear();
  for (std::uint32_t count = below(4); count > 0; --count) {
    const std::uint32_t tensor = below(kTensors);
    if (tensor < tensors_.size() && tensors_[tensor].count > 0)
      accesses_.push_back({tensors_[tensor], {tensor + 1}, below(2) == 0, below(5) == 0});
  }
  stream = {true, false};
  const KernelId kernel = below(3) == 0 ? kNoKernel : KernelId{below(kKernels)};
  event = KernelReady{{id}, kernel, accesses_, {below(kKernels)}, below(3) > 0};
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
      event = Faulted{{below(3)}, {{tensor.first.value + below(tensor.count)}, 1}};
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

void RandomRun::play(JournalledExecutor& executor, std::uint32_t events) {
  std::vector<Command> commands;
  while (events > 0 && !executor.failure()) {
    Event event;
    if (below(64) == 0) adopt(executor);
    if (!next_event(event)) continue;
    --events;
    at_ += Nanos{below(5'000)};
    executor.on({at_, event}, commands);
    for (const Command& command : commands) {
      if (const auto* move = std::get_if<Move>(&command)) flights_.push_back(move->id);
      if (const auto* launch = std::get_if<Launch>(&command)) streams_[launch->stream.value].launched = true;
    }
  }
}

}  // namespace spillway
