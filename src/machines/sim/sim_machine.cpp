#include "machines/sim/sim_machine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace spillway {
namespace {

constexpr StreamId kStream{0};
constexpr Nanos kEnd{std::uint64_t{1} << 62};  // no single step of the clock is nearly as long

}  // namespace

SimMachine::SimMachine(const Trace& trace, const Lifetimes& lifetimes, Layout layout, const SimHardware& hardware,
                       const std::vector<std::optional<Tier>>& placed, bool whole_tensors, PlanId plan)
    : trace_(trace),
      lifetimes_(lifetimes),
      layout_(std::move(layout)),
      whole_tensors_(whole_tensors),
      plan_(plan),
      faults_(hardware.faults),
      links_(hardware.links, [this](const Move& move) { return flash_time(move); }),
      waits_(trace.kernels.size()) {
  CHECK(!trace_.kernels.empty());
  CHECK(placed.size() == layout_.block_bytes.size());
  places_.reserve(placed.size());
  for (const auto& tier : placed) places_.push_back({.where = tier ? where(*tier) : Where::nowhere});
  if (!hardware.flash) return;
  flash_.emplace(*hardware.flash);
  for (BlockId block{0}; block.value < placed.size(); ++block.value)
    if (placed[block.value] == Tier::ssd) flash_is_full_ |= !flash_->place(block, bytes_of(block));
}

SimMachine::Where SimMachine::where(Tier tier) {
  return tier == Tier::device ? Where::device : tier == Tier::host ? Where::host : Where::ssd;
}

SimMachine::Place& SimMachine::at(BlockId block) {
  return is_piece(block) ? pieces_.at(block_of(block))[place_in_block(block)] : places_[block.value];
}

Bytes SimMachine::bytes_of(BlockId block) const {
  const Bytes whole = layout_.block_bytes[block_of(block).value];
  return is_piece(block) ? std::min(excess(whole, kPieceBytes * place_in_block(block)), kPieceBytes) : whole;
}

void SimMachine::put(BlockRange blocks, Place place) {
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value) at(block) = place;
}

void SimMachine::submit(std::span<const Command> commands) {
  for (const Command& command : commands) std::visit([&](const auto& what) { handle(what); }, command);
}

// The time of the flash for a move whose turn has come. What is written has its pages from then on.
double SimMachine::flash_time(const Move& move) {
  double nanos = 0;
  for (BlockId block = move.blocks.first; flash_ && block < move.blocks.end(); ++block.value) {
    if (move.from == Tier::ssd) {
      nanos += flash_->read_ns(bytes_of(block));
    } else if (const auto written = flash_->write(block, bytes_of(block))) {
      nanos += *written;
    } else {
      flash_is_full_ = true;
    }
  }
  return nanos;
}

void SimMachine::leave_flash(BlockRange blocks) {
  for (BlockId block = blocks.first; flash_ && block < blocks.end(); ++block.value)
    flash_->discard(block, bytes_of(block));
}

// Of what moves only some has its pages; and which tier has a copy, a place does not say.
void SimMachine::check_flash() const {
  if (!flash_) return;
  for (BlockId block{0}; block.value < places_.size(); ++block.value) {
    std::uint32_t least = 0, most = 0;
    const auto count = [&](BlockId id, Place place) {
      const std::uint32_t pages = flash_->pages(bytes_of(id));
      if (place.where == Where::ssd) least += pages;
      if (place.where == Where::ssd || place.where == Where::moving || place.has_copy) most += pages;
    };
    if (const auto split = pieces_.find(block); split != pieces_.end())
      for (std::uint32_t i = 0; i < kPiecesPerBlock; ++i) count({pieces_of(block).first.value + i}, split->second[i]);
    else
      count(block, places_[block.value]);
    const std::uint32_t held = flash_->valid_pages(block);
    CHECK(least <= held && held <= most);
  }
}

// Blocks that were announced together share the time of their service, and its latencies.
Load SimMachine::load_of(const Move& move) const {
  Load load;
  for (BlockId block = move.blocks.first; block < move.blocks.end(); ++block.value) load.bytes += bytes_of(block);
  if (move.urgency != Urgency::fault) {
    load.latencies = move.first_chunk ? 1 : 0;
    return load;
  }
  load.latencies = move.blocks.count;
  if (move.to != Tier::device) return load;
  if (is_piece(move.blocks.first)) {
    load.least = faults_.time(faults_.faults_of(load.bytes));
    return load;
  }
  for (BlockId block = move.blocks.first; block < move.blocks.end(); ++block.value) {
    const auto service = announced_.find(block);
    const bool alone = service == announced_.end();
    load.least += alone ? faults_.time(faults_.faults_of(bytes_of(block))) : service->second.handling;
    if (!alone && !service->second.pays_latency) --load.latencies;
  }
  return load;
}

void SimMachine::handle(const Move& move) {
  const bool up = move.to == Tier::device;
  for (BlockId block = move.blocks.first; block < move.blocks.end(); ++block.value) {
    CHECK(at(block).where == where(move.from));
    CHECK(up || at(block).has_copy == move.clean);
  }
  if (!up && move.clean) {  // Nothing has to move.
    put(move.blocks, {.where = where(move.to)});
    return push(MoveDone{move.id});
  }
  put(move.blocks, {.where = Where::moving, .has_copy = up && move.clean});
  links_.start(move, load_of(move));
}

void SimMachine::handle(const Populate& populate) {
  put(populate.blocks, {.where = Where::device});
  arrive(populate.blocks);
}

void SimMachine::handle(const Discard& discard) {
  if (discard.tier == Tier::ssd) leave_flash(discard.blocks);
  for (BlockId block = discard.blocks.first; block < discard.blocks.end(); ++block.value) {
    Place& place = at(block);
    if (place.where == Where::device && discard.tier != Tier::device) {
      CHECK(std::exchange(place.has_copy, false));
      continue;
    }
    CHECK(place.where == where(discard.tier) || (place.where == Where::in_pieces && discard.tier == Tier::ssd));
    if (place.where == Where::in_pieces) pieces_.erase(block);
    place = {};
  }
}

void SimMachine::handle(const Split& split) {
  CHECK(at(split.block).where == Where::ssd);
  at(split.block).where = Where::in_pieces;
  auto& pieces = pieces_[split.block];
  const BlockRange all = pieces_of(split.block);
  for (BlockId piece = all.first; piece < all.end(); ++piece.value)
    if (bytes_of(piece) > Bytes{}) pieces[place_in_block(piece)].where = Where::ssd;
  look_again(split.block);
}

void SimMachine::handle(const Park& park) {
  CHECK(at(park.block).where == Where::device);
  at(park.block).parked = true;
}

void SimMachine::handle(const Join& join) {
  for (const Place& piece : pieces_.at(join.block)) CHECK(piece == Place{.where = Where::ssd} || piece == Place{});
  at(join.block).where = Where::ssd;
  pieces_.erase(join.block);
  look_again(join.block);
}

void SimMachine::handle(const Cancel& cancel) {
  const auto cancelled = links_.cancel(cancel.move);
  if (!cancelled) return;
  put(cancelled->blocks, {.where = where(cancelled->from)});
  if (cancelled->to == Tier::ssd) leave_flash(cancelled->blocks);
  arrive(cancelled->blocks);
  push(MoveFailed{cancel.move, true});
}

void SimMachine::handle(const Launch& launch) {
  CHECK(launch.launch == (LaunchId{kStream, serial_}) && step_ == Step::ready);
  step_ = Step::touching;
  access_ = 0;
  in_access_ = 0;
  in_block_ = 0;
  if (whole_tensors_) touch();  // All is there. What it only reads may leave from now on.
}

void SimMachine::handle(const Timer& timer) { timers_.emplace(now_ + timer.delay, timer.timer); }

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
    const bool timer_first = !timers_.empty() && (!next || timers_.begin()->first < *next);
    if (timer_first) next = timers_.begin()->first;
    if (!next)
      return fail(Errc::bad_input, "the simulation is stuck: kernel '" + trace_.kernels[kernel_].name +
                                       "' waits and nothing moves; this is a bug of Spillway");
    if (step_ == Step::computing && links_.is_busy()) iterations_.back().hidden += *next - now_;
    now_ = *next;
    if (now_ > kEnd)
      return fail(
          Errc::bad_input,
          "the iterations last more than 146 years on this machine, which is as far as the simulated clock goes; "
          "give it faster links or faults");
    ended_.clear();
    links_.advance(now_, ended_);
    if (flash_is_full_)
      return fail(Errc::bad_input,
                  "the simulated SSD is full: each block takes whole pages of its flash; raise ssd.capacity or "
                  "flash.over_provisioning, or lower flash.page");
    for (const Move& move : ended_) {
      if (move.from == Tier::ssd && !move.clean) leave_flash(move.blocks);
      put(move.blocks, {.where = where(move.to), .has_copy = move.to == Tier::device && move.clean});
      if (move.to == Tier::device) arrive(move.blocks);
      push(MoveDone{move.id});
    }
    if (timer_first) {
      push(Elapsed{timers_.begin()->second});
      timers_.erase(timers_.begin());
      continue;
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
  iterations_.push_back({.begin = now_, .end = now_, .hidden = {}});
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

// The block, or the next piece of it, that the kernel misses.
std::optional<BlockId> SimMachine::absent(BlockId block) {
  if (at(block).where == Where::device && !at(block).parked) return std::nullopt;
  if (at(block).where != Where::in_pieces) return block;
  for (const BlockRange pieces = pieces_of(block); in_block_ < pieces.count; ++in_block_) {
    const BlockId piece{pieces.first.value + in_block_};
    if (at(piece).where != Where::device && bytes_of(piece) > Bytes{}) return piece;
  }
  return std::nullopt;
}

void SimMachine::touch() {
  for (; access_ < accesses_.size(); ++access_, in_access_ = 0) {
    const BlockRange blocks = accesses_[access_].blocks;
    for (; in_access_ < blocks.count; ++in_access_, in_block_ = 0) {
      const auto missed = absent({blocks.first.value + in_access_});
      if (!missed) continue;
      if (std::exchange(at(*missed).parked, false)) return push(Touched{*missed});
      // One service after the other: what leaves to make room for this one is not called back before that is over, or
      // it would leave and be called back again and again.
      return announced_.empty() ? announce(*missed) : void();
    }
  }
  announced_.clear();
  waits_[kernel_] = now_ - ready_at_;
  if (now_ > ready_at_) ++iterations_.back().stalled_kernels;
  step_ = Step::computing;
  deadline_ = now_ + trace_.kernels[kernel_].duration;
}

// One service of page faults: what is missed, and what the kernel touches next of what lies below, as long as one batch
// takes it. What is on its way already needs no service; what has no bytes yet, or is split, is looked at when its turn
// comes.
void SimMachine::announce(BlockId first) {
  const auto lies_below = [](Place place) { return place.where == Where::host || place.where == Where::ssd; };
  std::vector<std::pair<BlockId, std::uint64_t>> service;
  std::uint64_t faults = 0;
  const auto add = [&](BlockId block) {
    service.emplace_back(block, faults_.faults_of(bytes_of(block)));
    faults += service.back().second;
    announced_[block] = {};
  };
  if (at(first).where != Where::nowhere) ++iterations_.back().faults;
  add(first);
  bool goes_on = !is_piece(first) && lies_below(at(first)) && faults < faults_.batch;
  std::uint32_t from = in_access_ + 1;
  for (std::size_t access = access_; goes_on && access < accesses_.size(); ++access, from = 0) {
    const BlockRange blocks = accesses_[access].blocks;
    for (std::uint32_t in_access = from; goes_on && in_access < blocks.count; ++in_access) {
      const BlockId block{blocks.first.value + in_access};
      const Place place = at(block);
      goes_on = place.where != Where::nowhere && place.where != Where::in_pieces;
      if (!goes_on || !lies_below(place) || announced_.contains(block)) continue;
      goes_on = faults + faults_.faults_of(bytes_of(block)) <= faults_.batch;
      if (!goes_on) break;
      ++iterations_.back().faults;
      add(block);
    }
  }
  const Nanos time = faults_.time(faults);
  Nanos rest = time;
  PerTier<bool> paid;
  for (const auto& [block, count] : service) {
    const bool is_last = block == service.back().first;
    const Nanos handling = is_last ? rest : Nanos{time.value * count / faults};
    rest -= handling;
    const Where below = at(block).where;
    const bool pays = below == Where::host ? !std::exchange(paid.host, true) : !std::exchange(paid.ssd, true);
    announced_[block] = {.handling = handling, .pays_latency = pays};
    push(Faulted{kStream, {block, 1}});
  }
}

// What leaves again before it is touched faults again.
void SimMachine::arrive(BlockRange blocks) {
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value) announced_.erase(block);
}

void SimMachine::look_again(BlockId block) {
  std::erase_if(announced_, [&](const auto& announced) { return block_of(announced.first) == block; });
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
    if (flash_) iterations_.back().flash = flash_->work();
  }
}

}  // namespace spillway
