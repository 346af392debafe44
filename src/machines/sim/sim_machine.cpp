#include "machines/sim/sim_machine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace spillway {
namespace {

constexpr StreamId kStream{0};
constexpr Nanos kEnd{std::uint64_t{1} << 62};  // no single step of the clock is nearly as long

}  // namespace

SimMachine::SimMachine(const Trace& trace, const Lifetimes& lifetimes, Layout layout, const LinkRates& rates,
                       const std::vector<std::optional<Tier>>& placed, bool whole_tensors, PlanId plan)
    : trace_(trace),
      lifetimes_(lifetimes),
      layout_(std::move(layout)),
      whole_tensors_(whole_tensors),
      plan_(plan),
      links_(rates) {
  CHECK(!trace_.kernels.empty());
  CHECK(placed.size() == layout_.block_bytes.size());
  where_.reserve(placed.size());
  has_copy_.resize(placed.size());
  for (const auto& tier : placed) where_.push_back(tier ? where(*tier) : Where::nowhere);
}

SimMachine::Where SimMachine::where(Tier tier) {
  return tier == Tier::device ? Where::device : tier == Tier::host ? Where::host : Where::ssd;
}

void SimMachine::submit(std::span<const Command> commands) {
  const auto set = [&](BlockRange blocks, Where place) {
    std::fill_n(where_.begin() + blocks.first.value, blocks.count, place);
  };
  for (const Command& command : commands) {
    if (const auto* move = std::get_if<Move>(&command)) {
      Bytes bytes;
      for (BlockId block = move->blocks.first; block < move->blocks.end(); ++block.value) {
        CHECK(where_[block.value] == where(move->from));
        CHECK(move->to == Tier::device || has_copy_[block.value] == move->clean);
        bytes += layout_.block_bytes[block.value];
      }
      const bool up = move->to == Tier::device;
      std::fill_n(has_copy_.begin() + move->blocks.first.value, move->blocks.count, up && move->clean);
      if (!up && move->clean) {  // Nothing has to move.
        set(move->blocks, where(move->to));
        push(MoveDone{move->id});
        continue;
      }
      set(move->blocks, Where::moving);
      links_.start(*move, bytes);
    } else if (const auto* populate = std::get_if<Populate>(&command)) {
      set(populate->blocks, Where::device);
      arrive(populate->blocks);
    } else if (const auto* discard = std::get_if<Discard>(&command)) {
      for (BlockId block = discard->blocks.first; block < discard->blocks.end(); ++block.value) {
        const bool copy = where_[block.value] == Where::device && discard->tier != Tier::device;
        CHECK(copy ? has_copy_[block.value] : where_[block.value] == where(discard->tier));
        copy ? static_cast<void>(has_copy_[block.value] = false) : set({block, 1}, Where::nowhere);
      }
    } else if (const auto* cancel = std::get_if<Cancel>(&command)) {
      if (const auto cancelled = links_.cancel(cancel->move)) {
        set(cancelled->blocks, where(cancelled->from));
        push(MoveFailed{cancel->move, true});
      }
    } else {
      CHECK(std::get<Launch>(command).launch == (LaunchId{kStream, serial_}) && step_ == Step::ready);
      step_ = Step::touching;
      access_ = 0;
      in_access_ = 0;
    }
  }
}

Result<Stamped> SimMachine::wait() {
  for (;;) {
    if (events_.empty() && step_ == Step::touching) touch();
    if (!events_.empty()) {
      Event event = std::move(events_.front());
      events_.pop_front();
      return Stamped{now_, std::move(event)};
    }
    std::optional<Nanos> next = links_.next_change();
    const bool timed = step_ == Step::gap || step_ == Step::computing;
    const bool program_first = timed && (!next || deadline_ < *next);
    if (program_first) next = deadline_;
    if (!next)
      return fail(Errc::bad_input, "the simulation is stuck: kernel '" + trace_.kernels[kernel_].name +
                                       "' waits and nothing moves; this is a bug of Spillway");
    now_ = *next;
    if (now_ > kEnd)
      return fail(
          Errc::bad_input,
          "the iterations last more than 146 years on this machine, which is as far as the simulated clock goes; "
          "give it faster links or faults");
    ended_.clear();
    links_.advance(now_, ended_);
    for (const Move& move : ended_) {
      std::fill_n(where_.begin() + move.blocks.first.value, move.blocks.count, where(move.to));
      if (move.to == Tier::device) arrive(move.blocks);
      push(MoveDone{move.id});
    }
    if (!program_first) continue;
    if (step_ == Step::gap)
      announce_kernel();
    else
      finish_kernel();
  }
}

bool SimMachine::iteration_over() const { return step_ == Step::over && events_.empty(); }

void SimMachine::begin_iteration() {
  CHECK(iteration_over());
  if (iterations_.empty()) {
    // In the order of first use, so that what came to the device first is what is used first.
    std::vector<std::pair<std::uint32_t, TensorId>> present;
    for (std::uint32_t tensor = 0; tensor < trace_.tensors.size(); ++tensor)
      if (const Lifetime& life = lifetimes_.tensors[tensor]; life.alive_at_start)
        present.emplace_back(life.uses.empty() ? UINT32_MAX : life.uses.front().value, TensorId{tensor});
    std::ranges::sort(present);
    for (const auto& [first_use, tensor] : present) allocate(tensor);
  } else {
    carry_over();
  }
  iterations_.push_back({.begin = now_, .end = now_});
  kernel_ = 0;
  step_ = Step::gap;
  deadline_ = now_ + trace_.kernels.front().gap;
}

// A tensor that is carried under another id takes over the blocks of the one it comes from. That one, unless something
// is carried into it, too, gets the blocks at the other end of the chain. For a moment the bytes belong to ids that no
// trace has, since all tensors of a chain change their blocks at once.
void SimMachine::carry_over() {
  const auto count = static_cast<std::uint32_t>(trace_.tensors.size());
  const std::vector<BlockRange> before = layout_.tensors;
  std::vector<std::optional<std::uint32_t>> heir(count);
  for (std::uint32_t to = 0; to < count; ++to)
    if (const auto from = trace_.tensors[to].carried_from; from && from->value != to) heir[from->value] = to;
  for (std::uint32_t from = 0; from < count; ++from)
    if (heir[from]) push(Allocated{.tensor = {count + from}, .blocks = before[from], .keeps_bytes = true});
  for (std::uint32_t from = 0; from < count; ++from)
    if (heir[from]) push(Freed{{from}, before[from]});
  for (std::uint32_t from = 0; from < count; ++from) {
    if (!heir[from]) continue;
    layout_.tensors[*heir[from]] = before[from];
    if (trace_.tensors[from].carried_from) continue;
    std::uint32_t end = from;
    while (heir[end]) end = *heir[end];
    layout_.tensors[from] = before[end];
  }
  for (std::uint32_t from = 0; from < count; ++from)
    if (heir[from]) allocate({*heir[from]}, true);
  for (std::uint32_t from = 0; from < count; ++from)
    if (heir[from]) push(Freed{{count + from}, before[from]});
}

void SimMachine::allocate(TensorId tensor, bool keeps_bytes) {
  push(Allocated{tensor, layout_.tensors[tensor.value], label_of(tensor), keeps_bytes});
}

void SimMachine::free(TensorId tensor) { push(Freed{tensor, layout_.tensors[tensor.value]}); }

void SimMachine::announce_kernel() {
  for (const TensorId tensor : lifetimes_.births[kernel_]) allocate(tensor);
  accesses_ = layout_.accesses(trace_, trace_.kernels[kernel_], whole_tensors_);
  step_ = Step::ready;
  ready_at_ = now_;
  ++serial_;
  push(KernelReady{.launch = {kStream, serial_},
                   .kernel = {kernel_},
                   .accesses = accesses_,
                   .execution = execution_of({kernel_}),
                   .plan = plan_});
}

void SimMachine::touch() {
  for (; access_ < accesses_.size(); ++access_, in_access_ = 0) {
    const BlockRange blocks = accesses_[access_].blocks;
    for (; in_access_ < blocks.count; ++in_access_) {
      const BlockId block{blocks.first.value + in_access_};
      const Where place = where_[block.value];
      if (place == Where::device) continue;
      if (announced_ == block) return;
      if (place != Where::nowhere) ++iterations_.back().faults;
      announced_ = block;
      return push(Faulted{kStream, {block, 1}});
    }
  }
  announced_.reset();
  if (now_ > ready_at_) ++iterations_.back().stalled_kernels;
  step_ = Step::computing;
  deadline_ = now_ + trace_.kernels[kernel_].duration;
}

// What leaves again before it is touched faults again.
void SimMachine::arrive(BlockRange blocks) {
  if (announced_ && blocks.contains(*announced_)) announced_.reset();
}

void SimMachine::finish_kernel() {
  push(KernelDone{{kStream, serial_}});
  for (const TensorId tensor : lifetimes_.deaths[kernel_]) free(tensor);
  if (++kernel_ < trace_.kernels.size()) {
    step_ = Step::gap;
    deadline_ = now_ + trace_.kernels[kernel_].gap;
  } else {
    step_ = Step::over;
    iterations_.back().end = now_;
  }
}

}  // namespace spillway
