#include "executor/executor.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <variant>

#include "base/check.h"

namespace spillway {
namespace {

// The blocks of all accesses, each once: disjoint ranges in ascending order. Sparse accesses touch few of their blocks,
// so where kernels can fault they are left to faults.
std::vector<BlockRange> union_of(std::span<const BlockAccess> accesses, bool with_sparse) {
  std::vector<BlockRange> ranges;
  for (const BlockAccess& access : accesses)
    if (access.blocks.count > 0 && (with_sparse || !access.sparse)) ranges.push_back(access.blocks);
  std::ranges::sort(ranges, {}, &BlockRange::first);
  std::vector<BlockRange> merged;
  for (const BlockRange& range : ranges) {
    if (merged.empty() || merged.back().end() < range.first)
      merged.push_back(range);
    else
      merged.back().count = std::max(merged.back().end(), range.end()).value - merged.back().first.value;
  }
  return merged;
}

BlockRange common(BlockRange a, BlockRange b) {
  const BlockId begin = std::max(a.first, b.first), end = std::min(a.end(), b.end());
  return {begin, begin < end ? end.value - begin.value : 0};
}

// For each kernel the index of its first command; the commands are ordered by kernel.
template <class Commands, class KernelOf>
std::vector<std::uint32_t> index_by_kernel(const Commands& commands, std::uint32_t kernels, KernelOf kernel_of) {
  std::vector<std::uint32_t> from(kernels + 1, 0);
  for (const auto& command : commands) {
    CHECK(kernel_of(command).value < kernels);
    ++from[kernel_of(command).value + 1];
  }
  for (std::uint32_t kernel = 0; kernel < kernels; ++kernel) from[kernel + 1] += from[kernel];
  return from;
}

}  // namespace

Executor::Executor(PageTable table, ExecutorOptions options, std::unique_ptr<OnlinePolicy> online)
    : options_(options),
      migration_(std::move(table), options.migration, options.window_blocks),
      online_(std::move(online)) {}

void Executor::adopt(const Plan& plan, std::uint32_t kernel_count, const Iteration& iteration) {
  plan_ = &plan;
  iteration_ = iteration;
  // Also of what no kernel of such a plan uses.
  const bool keeps_copies =
      options_.migration.keeps_copies || std::ranges::any_of(plan.prefetches, &Prefetch::keeps_copy);
  migration_.begin_plan({.shared_blocks = !iteration.homes.empty(), .keeps_copies = keeps_copies},
                        // Who does not say which blocks are used and when says of none that it is idle.
                        Foresight(iteration.rows, iteration.rows.empty() ? 0 : kernel_count));
  CHECK(std::ranges::is_sorted(plan_->evictions, {}, &Eviction::after));
  CHECK(std::ranges::is_sorted(plan_->prefetches, {}, &Prefetch::at));
  evictions_from_ = index_by_kernel(plan_->evictions, kernel_count, [](const Eviction& move) { return move.after; });
  prefetches_from_ = index_by_kernel(plan_->prefetches, kernel_count, [](const Prefetch& move) { return move.at; });
}

void Executor::on(const Event& event, std::vector<Command>& out) {
  if (failure()) return;
  std::visit([&](const auto& what) { handle(what, out); }, event);
  settle(out);
}

void Executor::handle(const Allocated& event, std::vector<Command>& out) {
  if (event.tensor.value >= lodgings_.size()) lodgings_.resize(event.tensor.value + 1);
  Lodging& lodging = lodgings_[event.tensor.value];
  CHECK(!lodging.alive);
  lodging = {event.blocks, true};
  if (online_) online_->allocated(event, migration_.table());
  migration_.retain(event.blocks);
  // Its neighbours' copies, where they share a block, will not be as it is.
  if (!event.keeps_bytes) migration_.written(event.blocks, out);
}

void Executor::handle(const Freed& event, std::vector<Command>& out) {
  CHECK(event.tensor.value < lodgings_.size());
  Lodging& lodging = lodgings_[event.tensor.value];
  CHECK(lodging.alive && lodging.blocks == event.blocks);
  lodging.alive = false;
  if (online_) online_->freed(event);
  migration_.release(event.blocks, out);
}

void Executor::handle(const KernelReady& event, std::vector<Command>& out) {
  Stream& ready = stream(event.stream);
  CHECK(ready.state == StreamState::idle);
  ready.kernel = event.kernel;
  ready.working_set = union_of(event.accesses, !options_.kernels_fault);
  ready.state = StreamState::waiting;
  ready.missing = 0;
  ready.written.clear();
  for (const BlockAccess& access : event.accesses)
    if (access.writes) ready.written.push_back(access.blocks);
  for (const BlockRange& range : ready.written) migration_.written(range, out);
  for (const BlockRange& range : ready.working_set) migration_.drop_planned_evictions(range);
  for (const BlockAccess& access : event.accesses) migration_.foresight().used(access.blocks);
  expect_births(event.kernel, out);
  // What cannot be granted starts and runs by faults: no kernel ever waits for another one's memory.
  const bool granted = migration_.protection().grant(event.stream, ready.working_set);
  if (online_) look_ahead(event, granted);
  if (granted && event.waits)
    for (const BlockRange& range : ready.working_set)
      ready.missing += wait_for(event.stream, range, waits_for_all(event.kernel), out);
  if (ready.missing == 0) launch(event.stream, out);
}

void Executor::expect_births(KernelId kernel, std::vector<Command>& out) {
  const auto& births = iteration_.births;
  if (kernel.value < births.size()) {
    unplanned_kernels_ = 0;
    migration_.expect(births.subspan(kernel.value, std::min<std::size_t>(kBirthsAhead, births.size() - kernel.value)),
                      out);
  } else if (++unplanned_kernels_ == kPatience) {
    migration_.expect({}, out);  // The script does something else: others need the frames more.
  }
}

void Executor::look_ahead(const KernelReady& event, bool granted) {
  const bool wanted = granted && (event.kernel == kNoKernel || plan_ == nullptr);
  Forecast forecast = online_->kernel_ready(event, wanted);
  migration_.protection().came(event.stream, forecast.anew || !wanted);
  migration_.make_room_ahead(wanted ? std::optional(forecast.births) : std::nullopt);
  if (!wanted) return;
  if (forecast.anew && (plan_ == nullptr || plan_->moves() == 0))
    migration_.drop_planned_prefetches();  // They were for what does not come.
  for (ExpectedUse& use : forecast.added) {
    for (const BlockRange& blocks : use) migration_.plan_prefetch(blocks, migration_.keeps_copies());
    migration_.protection().expect(event.stream, std::move(use));
  }
}

bool Executor::waits_for_all(KernelId kernel) const {
  return !options_.kernels_fault || online_ || (kernel != kNoKernel && !iteration_.homes.empty());
}

// Asks for those blocks that the kernel must not start without; returns how many of the range it has to wait for.
std::uint64_t Executor::wait_for(StreamId id, BlockRange blocks, bool all, std::vector<Command>& out) {
  std::uint64_t missing = 0;
  // A planned prefetch that still waits in its queue is waited for, too, from now on as urgently as a kernel's need.
  const std::vector<BlockRange> issued = migration_.issued_prefetches(blocks);
  const auto is_issued = [&](BlockId block) {
    return std::ranges::any_of(issued, [&](const BlockRange& range) { return range.contains(block); });
  };
  BlockRange wanted{blocks.first, 0};
  bool wanted_on_their_way = false;  // Apart from the others, which need not wait for them.
  const auto ask = [&] {
    if (wanted.count > 0) migration_.want(wanted, Urgency::need, id, out);
    wanted.count = 0;
  };
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value) {
    const BlockState state = table().state(block);
    const bool on_its_way = state == BlockState::leaving || state == BlockState::arriving;
    const bool needed = all || on_its_way || (state == BlockState::stored && is_issued(block));
    if (on_device(state) || !needed) {
      ask();
      continue;
    }
    if (on_its_way != wanted_on_their_way) ask();
    wanted_on_their_way = on_its_way;
    if (wanted.count == 0) wanted.first = block;
    ++wanted.count;
    ++missing;
  }
  ask();
  return missing;
}

void Executor::launch(StreamId id, std::vector<Command>& out) {
  Stream& ready = stream(id);
  ready.state = StreamState::running;
  out.push_back(Launch{id});
  planned_at(ready.kernel);
}

void Executor::handle(const KernelDone& event, std::vector<Command>&) {
  Stream& done = stream(event.stream);
  CHECK(done.state == StreamState::running);
  done.state = StreamState::idle;
  migration_.protection().revoke(event.stream);
  migration_.foresight().passed(done.kernel);
  planned_after(done.kernel);
}

void Executor::handle(const Faulted& event, std::vector<Command>& out) {
  if (event.stream == kNobody)
    migration_.hold(event.blocks);
  else if (online_)
    online_->faulted(event);
  migration_.want(event.blocks, Urgency::fault, event.stream, out);
}

void Executor::handle(const MoveDone& event, std::vector<Command>& out) { migration_.done(event.move, arrived_, out); }

void Executor::handle(const MoveFailed& event, std::vector<Command>& out) {
  migration_.failed(event.move, event.cancelled, arrived_, out);
}

void Executor::settle(std::vector<Command>& out) {
  for (;;) {
    migration_.pump(arrived_, out);
    if (arrived_.empty()) return;
    for (const BlockRange& blocks : arrived_) {
      for (const Stream& stream : streams_)
        if (stream.state != StreamState::idle)
          for (const BlockRange& written : stream.written) migration_.written(common(written, blocks), out);
      for (std::uint32_t index = 0; index < streams_.size(); ++index) {
        Stream& waiting = streams_[index];
        if (waiting.state != StreamState::waiting) continue;
        std::uint64_t here = 0;
        auto range = std::ranges::lower_bound(waiting.working_set, blocks.first, std::less_equal{}, &BlockRange::end);
        for (; range != waiting.working_set.end() && range->first < blocks.end(); ++range)
          here += common(*range, blocks).count;
        waiting.missing -= std::min(waiting.missing, here);
        if (here > 0 && waiting.missing == 0) launch({index}, out);
      }
    }
    arrived_.clear();
  }
}

void Executor::planned_after(KernelId kernel) {
  if (std::size_t{kernel.value} + 1 >= evictions_from_.size()) return;
  for (std::uint32_t at = evictions_from_[kernel.value]; at < evictions_from_[kernel.value + 1]; ++at) {
    const Eviction& eviction = plan_->evictions[at];
    const auto blocks = home(eviction.tensor);
    skipped_commands_ += !blocks || !migration_.plan_eviction(*blocks, eviction.to);
  }
}

void Executor::planned_at(KernelId kernel) {
  if (std::size_t{kernel.value} + 1 >= prefetches_from_.size()) return;
  for (std::uint32_t at = prefetches_from_[kernel.value]; at < prefetches_from_[kernel.value + 1]; ++at) {
    const Prefetch& prefetch = plan_->prefetches[at];
    const auto blocks = home(prefetch.tensor);
    skipped_commands_ += !blocks || !migration_.plan_prefetch(*blocks, prefetch.keeps_copy);
  }
}

std::optional<BlockRange> Executor::home(TensorId tensor) const {
  if (!iteration_.homes.empty()) return iteration_.homes[tensor.value];
  if (tensor.value >= lodgings_.size() || !lodgings_[tensor.value].alive) return std::nullopt;
  return lodgings_[tensor.value].blocks;
}

Executor::Stream& Executor::stream(StreamId id) {
  if (id.value >= streams_.size()) streams_.resize(id.value + 1);
  return streams_[id.value];
}

}  // namespace spillway
