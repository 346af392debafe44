#include "executor/executor.h"

#include <algorithm>
#include <concepts>
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
template <class Command>
std::vector<std::uint32_t> index_by_kernel(const std::vector<Command>& commands, std::uint32_t kernels,
                                           KernelId Command::* kernel_of) {
  std::vector<std::uint32_t> from(kernels + 1, 0);
  for (const Command& command : commands) {
    const KernelId kernel = command.*kernel_of;
    CHECK(kernel.value < kernels);
    ++from[kernel.value + 1];
  }
  for (std::uint32_t kernel = 0; kernel < kernels; ++kernel) from[kernel + 1] += from[kernel];
  return from;
}

}  // namespace

Executor::Executor(PageTable table, ExecutorOptions options, std::unique_ptr<OnlinePolicy> online)
    : options_(options),
      migration_(std::move(table), options.migration,
                 {.window_blocks = options.window_blocks,
                  .waits_for_all = !options.migration.splits_blocks,
                  .grants_are_firm = !options.kernels_fault}),
      online_(std::move(online)) {}

void Executor::on(const Event& event, std::vector<Command>& out) {
  if (failure()) return;
  // Several drops may have been refused: what is told of the first says nothing of the others.
  const auto* fault = std::get_if<Faulted>(&event);
  if (fault == nullptr || fault->stream != kNobody) migration_.begin_event();
  std::visit([&](const auto& what) { handle(what, out); }, event);
  settle(out);
}

void Executor::handle(const Allocated& event, std::vector<Command>& out) {
  if (event.tensor.value >= lodgings_.size()) lodgings_.resize(event.tensor.value + 1);
  Lodging& lodging = lodgings_[event.tensor.value];
  CHECK(!lodging.alive && table().contains(event.blocks));
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

void Executor::handle(const Adopted& event, std::vector<Command>&) {
  plan_ = event.plan;
  awaited_.clear();
  delayed_.clear();
  evictions_from_.clear();
  prefetches_from_.clear();
  if (plan_ == nullptr) return migration_.begin_plan({.keeps_copies = options_.migration.keeps_copies}, {});
  const Plan& commands = plan_->commands;
  CHECK(std::ranges::is_sorted(commands.evictions, {}, &Eviction::after));
  CHECK(std::ranges::is_sorted(commands.prefetches, {}, &Prefetch::at));
  CHECK(plan_->births.size() <= plan_->kernels);
  const auto is_there = [&](BlockRange blocks) { return table().contains(blocks); };
  CHECK(std::ranges::all_of(plan_->homes, is_there));
  CHECK(std::ranges::all_of(plan_->rows, is_there, &Foresight::Row::blocks));
  for (const std::vector<BlockRange>& born : plan_->births) CHECK(std::ranges::all_of(born, is_there));
  // Also of what no kernel of such a plan uses.
  const bool keeps_copies =
      options_.migration.keeps_copies || std::ranges::any_of(commands.prefetches, &Prefetch::keeps_copy);
  migration_.begin_plan({.shared_blocks = !plan_->homes.empty(), .keeps_copies = keeps_copies},
                        // Who does not say which blocks are used and when says of none that it is idle.
                        Foresight(plan_->rows, plan_->rows.empty() ? 0 : plan_->kernels));
  evictions_from_ = index_by_kernel(commands.evictions, plan_->kernels, &Eviction::after);
  prefetches_from_ = index_by_kernel(commands.prefetches, plan_->kernels, &Prefetch::at);
}

void Executor::handle(const KernelReady& event, std::vector<Command>& out) {
  for (const InFlight& other : in_flight_)
    if (other.launch.stream == event.launch.stream)
      CHECK(other.state == InFlight::State::queued && other.launch != event.launch);
  for (const BlockAccess& access : event.accesses) CHECK(table().contains(access.blocks));
  InFlight& ready = in_flight_.emplace_back();
  ready.launch = event.launch;
  ready.kernel = follows(event.plan) ? event.kernel : kNoKernel;
  ready.plan = event.plan;
  CHECK(ready.kernel == kNoKernel || ready.kernel.value < plan_->kernels);
  ready.working_set = union_of(event.accesses, !options_.kernels_fault);
  ready.fits = !options_.kernels_fault || fits(event.accesses);
  for (const BlockAccess& access : event.accesses)
    if (access.writes) ready.written.push_back(access.blocks);
  for (const BlockRange& range : ready.written) migration_.written(range, out);
  for (const BlockRange& range : ready.working_set) migration_.drop_planned_evictions(range);
  for (const BlockAccess& access : event.accesses) migration_.foresight().used(access.blocks);
  for (const BlockAccess& access : event.accesses) migration_.uses_tensor(access.blocks);
  expect_births(ready.kernel, out);
  const bool granted = ready.fits && grant(ready);  // One that does not fit only keeps what it touches.
  if (online_) look_ahead(event, ready, granted);
  if (!event.waits) {
    CHECK(options_.kernels_fault);
    return note_started(ready, out);
  }
  if (granted) return ask_for_working_set(ready, out);
  // Where kernels can fault none waits for another one's memory: that one may wait for something that this one does.
  if (options_.kernels_fault) start(ready, out);
}

// What is sparse needs the room of what is dense, unless that is little.
bool Executor::fits(std::span<const BlockAccess> accesses) const {
  constexpr std::uint64_t kLittle = 4;
  const Bytes device = table().capacity(Tier::device);
  Bytes most;
  for (const BlockAccess& access : accesses) most += table().block_bytes() * access.blocks.count;
  if (most <= device) return true;
  const auto bytes_of = [&](bool with_sparse) {
    Bytes all;
    for (const BlockRange& blocks : union_of(accesses, with_sparse))
      for (BlockId block = blocks.first; block < blocks.end(); ++block.value) all += table().bytes(block);
    return all;
  };
  return bytes_of(true) <= device || bytes_of(false) * kLittle <= device;
}

// False while others of the same kind were there before it, too: a small kernel must not starve a large one.
bool Executor::grant(InFlight& kernel) {
  CHECK(kernel.state == InFlight::State::wants_grant);
  const auto waits = [](const InFlight& other) { return other.state == InFlight::State::wants_grant; };
  const bool is_first = &*std::ranges::find_if(in_flight_, waits) == &kernel;
  if (!options_.kernels_fault && !is_first) return false;
  if (migration_.protection().grant(kernel.launch, kernel.working_set)) {
    kernel.state = InFlight::State::wants_blocks;
    return true;
  }
  if (!options_.kernels_fault && !migration_.protection().has_grants())  // Nothing will ever make it fit.
    failure_ = Failure{Failure::Kind::device_too_small, migration_.protection().shortfall(kernel.working_set)};
  return false;
}

void Executor::grant_those_that_wait(std::vector<Command>& out) {
  for (InFlight& kernel : in_flight_) {
    if (kernel.state != InFlight::State::wants_grant) continue;
    if (!grant(kernel)) return;
    ask_for_working_set(kernel, out);
  }
}

void Executor::ask_for_working_set(InFlight& kernel, std::vector<Command>& out) {
  CHECK(kernel.state == InFlight::State::wants_blocks && kernel.missing == 0);
  for (const BlockRange& range : kernel.working_set)
    kernel.missing += wait_for(kernel.launch.stream, range, waits_for_all(kernel.kernel), out);
  start_if_it_may(kernel, out);
}

void Executor::start_if_it_may(InFlight& kernel, std::vector<Command>& out) {
  if (kernel.state == InFlight::State::wants_blocks && kernel.missing == 0 && !is_held_back(kernel)) start(kernel, out);
}

bool Executor::is_held_back(const InFlight& kernel) const {
  return kernel.kernel != kNoKernel && follows(kernel.plan) && std::ranges::any_of(awaited_, [&](const Awaited& move) {
           return move.kernel == kernel.kernel && migration_.is_under_way(move.blocks, move.up);
         });
}

void Executor::expect_births(KernelId kernel, std::vector<Command>& out) {
  if (plan_ != nullptr && kernel.value < plan_->births.size()) {
    const std::span births(plan_->births);
    unplanned_kernels_ = 0;
    migration_.expect(births.subspan(kernel.value, std::min<std::size_t>(kBirthsAhead, births.size() - kernel.value)),
                      out);
  } else if (++unplanned_kernels_ == kPatience) {
    migration_.expect({}, out);  // The script does something else: others need the frames more.
  }
}

void Executor::look_ahead(const KernelReady& event, const InFlight& ready, bool granted) {
  const StreamId stream = event.launch.stream;
  const bool wanted = granted && (ready.kernel == kNoKernel || plan_ == nullptr);
  Forecast forecast = online_->kernel_ready(event, wanted);
  migration_.protection().came(stream, forecast.anew || !wanted);
  migration_.make_room_ahead(wanted ? std::optional(forecast.births) : std::nullopt);
  if (!ready.fits) migration_.drop_planned_prefetches();
  if (!wanted) return;
  if (forecast.anew && (plan_ == nullptr || plan_->commands.moves() == 0))
    migration_.drop_planned_prefetches();  // They were for what does not come.
  bring_ahead(forecast.prefetches);
  for (ExpectedUse& use : forecast.added) migration_.protection().expect(stream, std::move(use));
}

void Executor::bring_ahead(const std::vector<BlockRange>& prefetches) {
  for (const BlockRange& blocks : prefetches) migration_.plan_prefetch(blocks, migration_.keeps_copies());
}

bool Executor::waits_for_all(KernelId kernel) const {
  const bool policy_waits = online_ && !online_->learns_from_faults_alone();
  return !options_.kernels_fault || policy_waits || (kernel != kNoKernel && !plan_->homes.empty());
}

// Asks for those blocks that the kernel must not start without; returns how many of the range it has to wait for.
std::uint64_t Executor::wait_for(StreamId id, BlockRange blocks, bool all, std::vector<Command>& out) {
  std::uint64_t missing = 0;
  // A planned prefetch that still waits in its queue is waited for, too, from now on as urgently as a kernel's need.
  const bool faults_on_issued = online_ && online_->learns_from_faults_alone();
  const auto issued = faults_on_issued ? std::vector<BlockRange>{} : migration_.issued_prefetches(blocks);
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
    if (on_device(state) || !needed || migration_.is_used_in_pieces(block)) {
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

void Executor::start(InFlight& kernel, std::vector<Command>& out) {
  CHECK(!kernel.has_started() && (options_.kernels_fault || kernel.state == InFlight::State::wants_blocks));
  out.push_back(Launch{kernel.launch});
  note_started(kernel, out);
}

void Executor::note_started(InFlight& kernel, std::vector<Command>& out) {
  kernel.state = InFlight::State::launched;
  kernel.started_at = migration_.departures();
  note_oldest();
  planned_at(kernel, out);
}

void Executor::note_oldest() {
  std::optional<std::uint64_t> oldest;
  for (const InFlight& kernel : in_flight_)
    if (kernel.has_started()) oldest = std::min(oldest.value_or(kernel.started_at), kernel.started_at);
  const auto does_not_fit = [](const InFlight& kernel) { return kernel.has_started() && !kernel.fits; };
  migration_.kernels_run_since(oldest, std::ranges::any_of(in_flight_, does_not_fit));
}

void Executor::handle(const KernelQueued& event, std::vector<Command>&) {
  InFlight& kernel = find(event.launch);
  CHECK(kernel.state == InFlight::State::launched);
  kernel.state = InFlight::State::queued;
}

void Executor::handle(const KernelDone& event, std::vector<Command>& out) {
  const auto of_stream = [&](const InFlight& kernel) { return kernel.launch.stream == event.launch.stream; };
  const auto first = std::ranges::find_if(in_flight_, of_stream);
  CHECK(first != in_flight_.end() && first->launch == event.launch);  // They are done in their order.
  const InFlight done = std::move(*first);
  CHECK(done.has_started());
  in_flight_.erase(first);
  note_oldest();
  migration_.ended(event.launch);
  migration_.protection().revoke(event.launch);
  if (done.kernel != kNoKernel && follows(done.plan)) {
    migration_.foresight().passed(done.kernel);
    planned_after(done, out);
  }
  grant_those_that_wait(out);
}

void Executor::handle(const Faulted& event, std::vector<Command>& out) {
  CHECK(event.blocks.count > 0 && table().contains(event.blocks));
  if (event.stream == kNobody)
    migration_.hold(event.blocks);
  else if (online_ && !on_device(table().state(block_of(event.blocks.first))))
    bring_ahead(online_->faulted({event.stream, {block_of(event.blocks.first), 1}}, table()));
  if (event.anew) migration_.protection().begins_anew(event.stream);
  if (event.touched_next > 0 && touch_together(event, out)) return;
  bool split = false;
  for (BlockId block = event.blocks.first; block < event.blocks.end(); ++block.value)
    split |= migration_.faulted(block, event.stream, out);
  if (!split) return;
  for (const InFlight& kernel : in_flight_)
    if (kernel.has_started()) migration_.protection().give_back(kernel.launch);
  migration_.protection().expect_nothing();
  if (!online_) return;
  migration_.drop_planned_prefetches();
  migration_.make_room_ahead(std::nullopt);
}

// False if not even the first of them can have its frame at once.
bool Executor::touch_together(const Faulted& event, std::vector<Command>& out) {
  const BlockRange blocks = migration_.free_to_touch({event.blocks.first, 1 + event.touched_next});
  for (std::uint32_t next = 1; online_ && next < blocks.count; ++next)
    bring_ahead(online_->faulted({event.stream, {{blocks.first.value + next}, 1}}, table()));
  if (blocks.count > 0) migration_.touched_first(blocks, event.stream, arrived_, out);
  return blocks.count > 0;
}

void Executor::handle(const Touched& event, std::vector<Command>&) {
  CHECK(table().contains({event.block, 1}));
  migration_.touched(event.block);
}

void Executor::handle(const MoveDone& event, std::vector<Command>& out) { migration_.done(event.move, arrived_, out); }

void Executor::handle(const MoveFailed& event, std::vector<Command>& out) {
  migration_.failed(event.move, event.cancelled, arrived_, out);
}

void Executor::settle(std::vector<Command>& out) {
  for (;;) {
    const std::size_t asked_before = out.size();
    migration_.pump(arrived_, out);
    const std::size_t asked = out.size();
    for (InFlight& kernel : in_flight_) start_if_it_may(kernel, out);
    if (arrived_.empty() && out.size() == asked) return;
    for (const BlockRange& blocks : arrived_) {
      for (const InFlight& kernel : in_flight_)
        for (const BlockRange& written : kernel.written) written_on_arrival(written, blocks, out);
      for (InFlight& waiting : in_flight_) {
        if (waiting.state != InFlight::State::wants_blocks) continue;
        std::uint64_t here = 0;
        auto range = std::ranges::lower_bound(waiting.working_set, blocks.first, std::less_equal{}, &BlockRange::end);
        for (; range != waiting.working_set.end() && range->first < blocks.end(); ++range)
          here += common(*range, blocks).count;
        waiting.missing -= std::min(waiting.missing, here);
        if (here > 0) start_if_it_may(waiting, out);
      }
    }
    arrived_.clear();
    if (out.size() == asked_before) return;  // All is as it was when nothing more could start.
  }
}

void Executor::written_on_arrival(BlockRange written, BlockRange arrived, std::vector<Command>& out) {
  if (!is_piece(arrived.first)) return migration_.written(common(written, arrived), out);
  for (BlockId piece = arrived.first; piece < arrived.end(); ++piece.value)
    if (written.contains(block_of(piece)) && table().contains({piece, 1})) migration_.written({piece, 1}, out);
}

void Executor::planned_after(const InFlight& done, std::vector<Command>& out) {
  CHECK(evictions_from_.size() > done.kernel.value + 1);
  for (std::uint32_t at = evictions_from_[done.kernel.value]; at < evictions_from_[done.kernel.value + 1]; ++at)
    if (const Eviction& eviction = plan_->commands.evictions[at]; !eviction.during) issue(eviction, out);
}

void Executor::planned_at(const InFlight& started, std::vector<Command>& out) {
  if (started.kernel == kNoKernel || !follows(started.plan)) return;
  const std::uint32_t kernel = started.kernel.value;
  CHECK(prefetches_from_.size() > kernel + 1 && evictions_from_.size() > kernel + 1);
  std::erase_if(awaited_, [&](const Awaited& move) { return move.kernel == started.kernel; });
  for (std::uint32_t at = evictions_from_[kernel]; at < evictions_from_[kernel + 1]; ++at) {
    const Eviction& eviction = plan_->commands.evictions[at];
    if (!eviction.during) continue;
    if (const auto blocks = home(eviction.tensor))
      migration_.leave_during(started.launch, *blocks, options_.kernels_fault);
    issue(eviction, out);
  }
  for (std::uint32_t at = prefetches_from_[kernel]; at < prefetches_from_[kernel + 1]; ++at)
    issue(plan_->commands.prefetches[at], out);
}

template <class PlannedMove>
void Executor::issue(const PlannedMove& command, std::vector<Command>& out) {
  if (command.delay > Nanos{}) {
    delayed_.push_back({next_timer_, command});
    out.push_back(Timer{next_timer_++, command.delay});
  } else if constexpr (std::same_as<PlannedMove, Eviction>) {
    evict(command);
  } else {
    prefetch(command);
  }
}

void Executor::handle(const Elapsed& event, std::vector<Command>&) {
  const auto found = std::ranges::find(delayed_, event.timer, &Delayed::timer);
  if (found == delayed_.end()) return;  // It was of another plan.
  const auto command = found->command;
  delayed_.erase(found);
  if (const auto* eviction = std::get_if<Eviction>(&command))
    evict(*eviction);
  else
    prefetch(std::get<Prefetch>(command));
}

void Executor::evict(const Eviction& eviction) {
  const auto blocks = home(eviction.tensor);
  const bool done = blocks && migration_.plan_eviction(*blocks, eviction.to);
  skipped_commands_ += !done;
  if (done) await(eviction.awaited_by, *blocks, false);
}

void Executor::prefetch(const Prefetch& prefetch) {
  const auto blocks = home(prefetch.tensor);
  const bool done = blocks && migration_.plan_prefetch(*blocks, prefetch.keeps_copy);
  skipped_commands_ += !done;
  if (done) await(prefetch.awaited_by, *blocks, true);
}

void Executor::await(std::optional<KernelId> by, BlockRange blocks, bool up) {
  if (by) awaited_.push_back({*by, blocks, up});
}

std::optional<BlockRange> Executor::home(TensorId tensor) const {
  if (!plan_->homes.empty()) {
    CHECK(tensor.value < plan_->homes.size());
    return plan_->homes[tensor.value];
  }
  if (tensor.value >= lodgings_.size() || !lodgings_[tensor.value].alive) return std::nullopt;
  return lodgings_[tensor.value].blocks;
}

Executor::InFlight& Executor::find(LaunchId launch) {
  const auto found = std::ranges::find(in_flight_, launch, &InFlight::launch);
  CHECK(found != in_flight_.end());
  return *found;
}

void Executor::check_invariants() const {
  migration_.check_invariants();
  CHECK(arrived_.empty());  // The kernels have been told.
  std::vector<std::uint32_t> tensors(table().block_count());
  for (const Lodging& lodging : lodgings_)
    for (BlockId block = lodging.blocks.first; lodging.alive && block < lodging.blocks.end(); ++block.value)
      ++tensors[block.value];
  for (BlockId block{0}; block.value < tensors.size(); ++block.value) {
    CHECK(table().live(block) == (tensors[block.value] > 0));
    CHECK(table().shared(block) == (tensors[block.value] > 1));
  }
  for (auto kernel = in_flight_.begin(); kernel != in_flight_.end(); ++kernel) {
    const auto of_stream = [&](const InFlight& later) { return later.launch.stream == kernel->launch.stream; };
    const bool is_last = std::none_of(std::next(kernel), in_flight_.end(), of_stream);
    CHECK(is_last || kernel->state == InFlight::State::queued);  // They run in their order.
    CHECK(kernel->missing == 0 || kernel->state == InFlight::State::wants_blocks);
    CHECK(kernel->state != InFlight::State::wants_blocks || kernel->missing > 0 || is_held_back(*kernel));
  }
}

}  // namespace spillway
