#include "journal/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "memory/pieces.h"

namespace spillway {
namespace {

// Far more than any run has; what a few bytes can make us hold stays small.
constexpr std::uint32_t kMostTensors = 1u << 24;
constexpr std::uint32_t kMostStreams = 1u << 16;
constexpr std::uint32_t kMostKernels = 1u << 22;
constexpr Bytes kMostCapacity{std::uint64_t{1} << 56};

template <class... T>
std::unexpected<Error> wrong(fmt::format_string<T...> text, T&&... values) {
  return fail(Errc::bad_input, fmt::format(text, std::forward<T>(values)...));
}

bool lies_in(BlockRange range, std::uint32_t blocks) {
  return range.count <= blocks && range.first.value <= blocks - range.count;
}

}  // namespace

Result<> Ledger::check(BlockRange blocks) const {
  if (lies_in(blocks, blocks_)) return {};
  return wrong("there are {} blocks, and it names {} from {} on", blocks_, blocks.count, blocks.first.value);
}

Result<> Ledger::check(StreamId stream) const {
  if (stream.value < kMostStreams) return {};
  return wrong("there is no stream {}", stream.value);
}

Result<> Ledger::told(const Event& event, Nanos at) {
  return std::visit([&](const auto& what) { return take(what, at); }, event);
}

Result<> Ledger::take(const Allocated& event, Nanos) {
  TRY_VOID(check(event.blocks));
  if (event.tensor.value >= kMostTensors || event.blocks.count == 0)
    return wrong("there is no tensor {} in {} blocks", event.tensor.value, event.blocks.count);
  if (event.tensor.value >= homes_.size()) homes_.resize(event.tensor.value + 1);
  BlockRange& home = homes_[event.tensor.value];
  if (home.count > 0) return wrong("tensor {} is alive already", event.tensor.value);
  home = event.blocks;
  ++alive_;
  return {};
}

Result<> Ledger::take(const Freed& event, Nanos) {
  if (event.tensor.value >= homes_.size() || event.blocks.count == 0 || homes_[event.tensor.value] != event.blocks)
    return wrong("tensor {} is not alive in those blocks", event.tensor.value);
  homes_[event.tensor.value] = {};
  --alive_;
  return {};
}

Result<> Ledger::take(const KernelReady& event, Nanos at) {
  TRY_VOID(check(event.launch.stream));
  for (const BlockAccess& access : event.accesses) TRY_VOID(check(access.blocks));
  if (plan_ && event.plan == plan_->id && event.kernel != kNoKernel && event.kernel.value >= plan_->kernels)
    return wrong("there is no kernel {} in an iteration of {}", event.kernel.value, plan_->kernels);
  if (!event.waits && !kernels_fault_) return wrong("a kernel that cannot fault has started before it was let go");
  for (const auto& [launch, kernel] : kernels_)
    if (launch.stream == event.launch.stream && (!kernel.queued || launch.serial >= event.launch.serial))
      return wrong("stream {} has a kernel already that has not ended", launch.stream.value);
  kernels_[event.launch] = {.kernel = event.kernel, .plan = event.plan, .since = at, .launched = !event.waits};
  return {};
}

Result<> Ledger::take(const KernelQueued& event, Nanos) {
  const auto kernel = kernels_.find(event.launch);
  if (kernel == kernels_.end() || !kernel->second.launched || kernel->second.queued)
    return wrong("stream {} has launched no kernel that could be queued", event.launch.stream.value);
  kernel->second.queued = true;
  return {};
}

Result<> Ledger::take(const KernelDone& event, Nanos) {
  const auto of_stream = [&](const auto& kernel) { return kernel.first.stream == event.launch.stream; };
  const auto kernel = kernels_.find(event.launch);
  if (kernel == kernels_.end() || !kernel->second.launched)
    return wrong("stream {} runs no kernel that could end", event.launch.stream.value);
  if (kernel != std::ranges::find_if(kernels_, of_stream))
    return wrong("stream {} has a kernel that must end first", event.launch.stream.value);
  kernels_.erase(kernel);
  faults_.erase(event.launch.stream);
  return {};
}

Result<> Ledger::take(const Adopted& event, Nanos) {
  if (event.plan)
    if (const auto good = spillway::check(*event.plan, blocks_); !good)
      return fail(Errc::bad_input, "a plan cannot be followed: " + good.error().message);
  for (const auto& [launch, kernel] : kernels_)
    if (event.plan && kernel.plan == event.plan->id && kernel.kernel != kNoKernel &&
        kernel.kernel.value >= event.plan->kernels)
      return wrong("plan {} has no kernel {}, which stream {} runs", kernel.plan.value, kernel.kernel.value,
                   launch.stream.value);
  plan_ = event.plan;
  return {};
}

Result<> Ledger::take(const Faulted& event, Nanos at) {
  if (is_piece(event.blocks.first)) {
    const BlockId block = block_of(event.blocks.first);
    if (event.blocks.count != 1 || !split_.contains(block)) return wrong("block {} is not split", block.value);
  } else {
    TRY_VOID(check(event.blocks));
  }
  if (event.blocks.count == 0) return wrong("it names no block");
  if (event.stream == kNobody) return {};
  TRY_VOID(check(event.stream));
  faults_[event.stream] = {event.blocks, at};
  return {};
}

Result<> Ledger::take(const Touched& event, Nanos) { return check(BlockRange{event.block, 1}); }
Result<> Ledger::take(const Elapsed& event, Nanos) { return wrong("no run asked for timer {}", event.timer); }
Result<> Ledger::take(const MoveDone& event, Nanos) { return land(event.move, true); }
Result<> Ledger::take(const MoveFailed& event, Nanos) { return land(event.move, false); }

Result<> Ledger::land(MoveId move, bool done) {
  const auto flight = flights_.find(move);
  if (flight == flights_.end()) return wrong("move {} is not under way", move.value);
  const Move& landed = flight->second.move;
  if ((landed.to == Tier::device) == done) come(landed.blocks);
  flights_.erase(flight);
  return {};
}

void Ledger::come(BlockRange blocks) {
  std::erase_if(faults_, [&](const auto& fault) { return blocks.contains(fault.second.blocks.first); });
}

// Whoever waits for the block or a piece of it faults again.
void Ledger::look_again(BlockId block) {
  std::erase_if(faults_, [&](const auto& fault) { return block_of(fault.second.blocks.first) == block; });
}

void Ledger::asked(const Command& command, Nanos at) {
  if (const auto* move = std::get_if<Move>(&command)) {
    flights_[move->id] = {*move, at};
  } else if (const auto* populate = std::get_if<Populate>(&command)) {
    come(populate->blocks);
  } else if (const auto* split = std::get_if<Split>(&command)) {
    split_.insert(split->block);
    look_again(split->block);
  } else if (const auto* join = std::get_if<Join>(&command)) {
    split_.erase(join->block);
    look_again(join->block);
  } else if (const auto* discard = std::get_if<Discard>(&command)) {
    for (BlockId block = discard->blocks.first; block < discard->blocks.end(); ++block.value)
      if (split_.erase(block) > 0) look_again(block);
  } else if (const auto* cancel = std::get_if<Cancel>(&command)) {
    if (const auto flight = flights_.find(cancel->move); flight != flights_.end()) flight->second.cancelled = true;
  } else if (const auto* launch = std::get_if<Launch>(&command)) {
    if (const auto kernel = kernels_.find(launch->launch); kernel != kernels_.end())
      kernel->second = {kernel->second.kernel, kernel->second.plan, at, true};
  }
}

Result<> check(const Beginning& beginning, std::uint32_t most_blocks) {
  const auto& [version, capacity, blocks, options, online, online_device] = beginning;
  std::uint64_t count = 0;
  PerTier<Bytes> placed{};
  for (const BlockRun& run : blocks) {
    count += run.count;
    if (count > most_blocks) return wrong("more than {} blocks", most_blocks);
    const Bytes most = options.migration.splits_blocks ? kBlockBytes : kMostBlockBytes;
    if (run.bytes == Bytes{} || run.bytes > most) return wrong("a block of {} bytes", run.bytes.value);
    if (run.placed) placed[*run.placed] += run.bytes * run.count;
  }
  for (const Tier tier : kTiers)
    if (capacity[tier] > kMostCapacity || placed[tier] > capacity[tier])
      return wrong("{} holds {} bytes, and {} are there", to_text(tier), capacity[tier].value, placed[tier].value);
  if (options.migration.chunk_blocks == 0 || options.migration.planned_in_flight == 0) return wrong("no moves at all");
  if (options.window_blocks == 0) return wrong("threads that keep no block while they touch it");
  if (online_device > kMostCapacity) return wrong("a device of {} bytes", online_device.value);
  return {};
}

Result<> check(const FollowedPlan& followed, std::uint32_t blocks) {
  const auto& [id, kernels, plan, homes, rows, births] = followed;
  if (kernels > kMostKernels || births.size() > kernels) return wrong("an iteration of {} kernels", kernels);
  const auto in_iteration = [&](KernelId kernel) { return kernel.value < kernels; };
  const auto known = [&](TensorId tensor) { return homes.empty() || tensor.value < homes.size(); };
  for (const Eviction& eviction : plan.evictions)
    if (!in_iteration(eviction.after) || !known(eviction.tensor) || eviction.to == Tier::device)
      return wrong("an eviction of tensor {} after kernel {}", eviction.tensor.value, eviction.after.value);
  for (const Prefetch& prefetch : plan.prefetches)
    if (!in_iteration(prefetch.at) || !known(prefetch.tensor))
      return wrong("a prefetch of tensor {} at kernel {}", prefetch.tensor.value, prefetch.at.value);
  if (!std::ranges::is_sorted(plan.evictions, {}, &Eviction::after) ||
      !std::ranges::is_sorted(plan.prefetches, {}, &Prefetch::at))
    return wrong("commands that are not in the order of kernels");
  const auto there = [&](BlockRange range) { return lies_in(range, blocks); };
  if (!std::ranges::all_of(homes, there) || !std::ranges::all_of(rows, there, &Foresight::Row::blocks) ||
      !std::ranges::all_of(births, [&](const auto& born) { return std::ranges::all_of(born, there); }))
    return wrong("blocks that there are not");
  for (const Foresight::Row& row : rows)
    if (row.uses.empty() || !std::ranges::is_sorted(row.uses) || !in_iteration(row.uses.back()))
      return wrong("uses that are not kernels in their order");
  return {};
}

}  // namespace spillway
