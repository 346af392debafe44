#include "machines/sim/sim_machine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace spillway {
namespace {

constexpr double kNoWork = 1e-6;               // left over by rounding
constexpr Nanos kEnd{std::uint64_t{1} << 62};  // no single step of the clock is nearly as long

}  // namespace

SimMachine::SimMachine(const Trace& trace, const Lifetimes& lifetimes, Layout layout, const SimHardware& hardware,
                       const std::vector<std::optional<Tier>>& placed, bool whole_tensors, PlanId plan, Tensors tensors)
    : block_bytes_(layout.block_bytes),
      owners_(layout.block_bytes.size()),
      whole_tensors_(whole_tensors),
      plan_(plan),
      dead_stays_(tensors == Tensors::in_pool_dead_stays),
      faults_(hardware.faults),
      links_(hardware.links, [this](const Move& move) { return flash_time(move); }) {
  if (tensors != Tensors::in_their_own) pool_.emplace(trace);
  CHECK(!trace.kernels.empty());
  CHECK(placed.size() == block_bytes_.size());
  programs_.push_back({.job = {.trace = trace, .lifetimes = lifetimes, .layout = std::move(layout)},
                       .stream = {},
                       .deadline = {},
                       .ready_at = {},
                       .on_device = {},
                       .peak = {}});
  programs_.front().waits.resize(trace.kernels.size());
  programs_.front().hidden.resize(trace.kernels.size());
  places_.reserve(placed.size());
  for (const auto& tier : placed) {
    if (tier == Tier::device) programs_.front().on_device += block_bytes_[places_.size()];
    places_.push_back({.where = tier ? where(*tier) : Where::nowhere});
  }
  if (!hardware.flash) return;
  flash_.emplace(*hardware.flash);
  for (BlockId block{0}; block.value < placed.size(); ++block.value)
    if (placed[block.value] == Tier::ssd) flash_is_full_ |= !flash_->place(block, bytes_of(block));
}

SimMachine::SimMachine(std::vector<SimJob> jobs, std::vector<Bytes> block_bytes, const SimHardware& hardware,
                       bool whole_tensors)
    : block_bytes_(std::move(block_bytes)),
      owners_(block_bytes_.size()),
      whole_tensors_(whole_tensors),
      faults_(hardware.faults),
      links_(hardware.links, [this](const Move& move) { return flash_time(move); }),
      places_(block_bytes_.size()) {
  for (SimJob& job : jobs) {
    const auto index = static_cast<std::uint32_t>(programs_.size());
    CHECK(!job.trace.kernels.empty() && job.iterations > 0 && job.weight > 0);
    for (const BlockRange& blocks : job.layout.tensors)
      for (BlockId block = blocks.first; block < blocks.end(); ++block.value) owners_[block.value] = index;
    const Nanos arrival = job.arrival;
    programs_.push_back({.job = std::move(job),
                         .stream = {index},
                         .step = Step::away,
                         .deadline = arrival,
                         .ready_at = {},
                         .on_device = {},
                         .peak = {}});
    programs_.back().waits.resize(programs_.back().job.trace.kernels.size());
    programs_.back().hidden.resize(programs_.back().job.trace.kernels.size());
  }
  if (hardware.flash) flash_.emplace(*hardware.flash);
}

SimMachine::Where SimMachine::where(Tier tier) {
  return tier == Tier::device ? Where::device : tier == Tier::host ? Where::host : Where::ssd;
}

SimMachine::Place& SimMachine::at_piece(BlockId piece) { return pieces_.at(block_of(piece))[place_in_block(piece)]; }

Bytes SimMachine::bytes_of_piece(BlockId piece) const {
  return std::min(excess(block_bytes_[block_of(piece).value], kPieceBytes * place_in_block(piece)), kPieceBytes);
}

void SimMachine::put(BlockRange blocks, Place place) {
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value) {
    Place& now = at(block);
    const Place before = std::exchange(now, place);
    const auto counts = [](Place one) { return one.where == Where::device || one.where == Where::moving; };
    if (counts(before) != counts(place)) {
      SimProgram& owner = owner_of(block);
      counts(place) ? owner.on_device += bytes_of(block) : owner.on_device -= bytes_of(block);
      owner.peak = std::max(owner.peak, owner.on_device);
    }
    // What the SSD has stays as it is until it is written again.
    const bool stays = place.where == Where::ssd || place.has_copy || before.where == Where::ssd;
    now.has_holes = before.has_holes && stays && place.where != Where::nowhere;
  }
}

SimProgram& SimMachine::owner_of(BlockId block) { return programs_[owners_[block_of(block).value]]; }

void SimMachine::submit(std::span<const Command> commands) {
  for (const Command& command : commands) std::visit([&](const auto& what) { handle(what); }, command);
  go_on_touching();
}

// Where there are several jobs: what has come for one is touched before it can leave again for another one, or both
// could wait for ever.
void SimMachine::go_on_touching() {
  if (programs_.size() == 1) return;
  for (SimProgram& program : programs_)
    if (program.step == Step::touching) touch(program);
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
      if (place.where == Where::ssd && !place.has_holes) least += pages;
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
Load SimMachine::load_of(const Move& move) {
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
    const auto& announced = owner_of(block).announced;
    const auto service = std::ranges::find(announced, block, &SimProgram::Announced::block);
    const bool alone = service == announced.end();
    load.least += alone ? faults_.time(faults_.faults_of(bytes_of(block))) : service->handling;
    if (!alone && !service->pays_latency) --load.latencies;
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
    put({block, 1}, {});
  }
}

void SimMachine::handle(const Split& split) {
  CHECK(at(split.block).where == Where::ssd);
  at(split.block).where = Where::in_pieces;
  auto& pieces = pieces_[split.block];
  const BlockRange all = pieces_of(split.block);
  for (BlockId piece = all.first; piece < all.end(); ++piece.value)
    if (bytes_of(piece) > Bytes{})
      pieces[place_in_block(piece)] = {.where = Where::ssd, .has_holes = at(split.block).has_holes};
  look_again(split.block);
}

void SimMachine::handle(const Park& park) {
  CHECK(at(park.block).where == Where::device);
  at(park.block).parked = true;
}

void SimMachine::handle(const Join& join) {
  bool has_holes = false;
  const BlockRange all = pieces_of(join.block);
  for (BlockId piece = all.first; piece < all.end(); ++piece.value) {
    const Place& place = at(piece);
    CHECK((place.where == Where::ssd && !place.has_copy) || place == Place{});
    has_holes |= place.has_holes || (place == Place{} && bytes_of(piece) > Bytes{});
  }
  at(join.block) = {.where = Where::ssd, .has_holes = has_holes};
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
  CHECK(launch.launch.stream.value < programs_.size());
  SimProgram& program = programs_[launch.launch.stream.value];
  CHECK(launch.launch.serial == program.serial && program.step == Step::ready);
  program.step = Step::touching;
  program.access = 0;
  program.in_access = 0;
  program.in_block = 0;
  if (whole_tensors_) touch(program);  // All is there. What it only reads may leave from now on.
}

void SimMachine::handle(const Timer& timer) { timers_.emplace(now_ + timer.delay, timer.timer); }

double SimMachine::computing_weight() const {
  double weight = 0;
  for (const SimProgram& program : programs_)
    if (program.step == Step::computing) weight += program.job.weight;
  return weight;
}

Nanos SimMachine::end_of_work(const SimProgram& program) const {
  const double alone = program.job.weight / computing_weight();
  return now_ + Nanos{static_cast<std::uint64_t>(std::ceil(std::max(0.0, program.work / alone - kNoWork)))};
}

// Time has passed: those that compute are so much further.
void SimMachine::compute(Nanos passed) {
  const double weight = computing_weight();
  for (SimProgram& program : programs_) {
    if (program.step != Step::computing) continue;
    program.work -= static_cast<double>(passed.value) * program.job.weight / weight;
    if (!links_.is_busy()) continue;
    program.iterations.back().hidden += passed;
    program.hidden[program.kernel] += passed;
  }
}

// The program that goes on before anything else happens, and when: the first of those at the same time.
SimProgram* SimMachine::next_in_time(std::optional<Nanos>& next) {
  SimProgram* first = nullptr;
  for (SimProgram& program : programs_) {
    const bool waits = program.step == Step::gap || (program.step == Step::away && program.iterations.empty());
    if (!waits && program.step != Step::computing) continue;
    const Nanos at = waits ? program.deadline : end_of_work(program);
    if (next && at >= *next) continue;
    next = at;
    first = &program;
  }
  return first;
}

void SimMachine::go_on(SimProgram& program) {
  if (program.step == Step::away)
    arrive(program);
  else if (program.step == Step::gap)
    announce_kernel(program);
  else
    finish_kernel(program);
}

Result<Stamped> SimMachine::wait() {
  for (;;) {
    for (SimProgram& program : programs_)
      if (events_.empty() && program.step == Step::touching) touch(program);
    if (!events_.empty()) {
      Result<Stamped> told(std::in_place, now_, std::move(events_.front()));
      events_.pop_front();
      return told;
    }
    std::optional<Nanos> next = links_.next_change();
    SimProgram* program = next_in_time(next);
    const bool timer_first = !timers_.empty() && (!next || timers_.begin()->first < *next);
    if (timer_first) next = timers_.begin()->first;
    if (!next) {
      const auto waiting = std::ranges::find_if(
          programs_, [](const SimProgram& one) { return one.step == Step::ready || one.step == Step::touching; });
      return fail(Errc::bad_input, "the simulation is stuck: kernel '" +
                                       (waiting != programs_.end() ? waiting->current().name : std::string("(none)")) +
                                       "' waits and nothing moves; this is a bug of Spillway");
    }
    compute(*next - now_);
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
    go_on_touching();
    if (timer_first) {
      push(Elapsed{timers_.begin()->second});
      timers_.erase(timers_.begin());
    } else if (program != nullptr) {
      go_on(*program);
    }
  }
}

void SimMachine::arrive(SimProgram& program) {
  has_changed_ = true;
  begin_iteration(program);
}

// What it still has is dropped.
void SimMachine::leave(SimProgram& program) {
  has_changed_ = true;
  program.step = Step::away;
  for (std::uint32_t tensor = 0; tensor < program.job.trace.tensors.size(); ++tensor)
    if (program.job.lifetimes.tensors[tensor].alive_at_end) free(program, {tensor});
}

bool SimMachine::all_have_left() const {
  return events_.empty() && std::ranges::all_of(programs_, [](const SimProgram& program) {
           return program.step == Step::away && !program.iterations.empty();
         });
}

bool SimMachine::iteration_over() const { return programs_.front().step == Step::over && events_.empty(); }

void SimMachine::begin_iteration() {
  CHECK(iteration_over());
  begin_iteration(programs_.front());
}

void SimMachine::begin_iteration(SimProgram& program) {
  const Trace& trace = program.job.trace;
  if (program.iterations.empty()) {
    // In the order of first use, so that what came to the device first is what is used first.
    if (dead_stays_) push(Allocated{{0}, {{0}, static_cast<std::uint32_t>(block_bytes_.size())}});
    for (const TensorId tensor : present_at_start(program.job.lifetimes)) allocate(program, tensor);
  } else {
    carry_over(program);
  }
  program.iterations.push_back({.begin = now_, .end = now_, .waited = {}, .hidden = {}});
  program.kernel = 0;
  program.step = Step::gap;
  program.deadline = now_ + trace.kernels.front().gap;
}

// A tensor that is carried under another id takes over the blocks of the one it comes from. That one, unless something
// is carried into it, too, gets the blocks at the other end of the chain. For a moment the bytes belong to ids that no
// trace has, since all tensors of a chain change their blocks at once.
void SimMachine::carry_over(SimProgram& program) {
  const Trace& trace = program.job.trace;
  Layout& layout = program.job.layout;
  const std::uint32_t others =
      programs_.back().job.first_tensor + static_cast<std::uint32_t>(programs_.back().job.trace.tensors.size());
  const std::uint32_t beyond = others + program.job.first_tensor;  // ids that no trace has
  const auto count = static_cast<std::uint32_t>(trace.tensors.size());
  const std::vector<BlockRange> before = layout.tensors;
  const std::vector<std::optional<std::uint32_t>> heir = heirs_of(trace);
  if (dead_stays_) return pool_->carry(heir, layout);
  for (std::uint32_t from = 0; from < count; ++from)
    if (heir[from]) push(Allocated{.tensor = {beyond + from}, .blocks = before[from], .keeps_bytes = true});
  for (std::uint32_t from = 0; from < count; ++from)
    if (heir[from]) push(Freed{{program.job.first_tensor + from}, before[from]});
  for (std::uint32_t from = 0; from < count; ++from) {
    if (!heir[from]) continue;
    layout.tensors[*heir[from]] = before[from];
    if (trace.tensors[from].carried_from) continue;
    std::uint32_t end = from;
    while (heir[end]) end = *heir[end];
    layout.tensors[from] = before[end];
  }
  if (pool_) pool_->carry(heir, layout);
  for (std::uint32_t from = 0; from < count; ++from)
    if (heir[from]) tell_of(program, {*heir[from]}, true);
  for (std::uint32_t from = 0; from < count; ++from)
    if (heir[from]) push(Freed{{beyond + from}, before[from]});
}

void SimMachine::allocate(SimProgram& program, TensorId tensor) {
  if (pool_) pool_->allocate(tensor, program.job.layout);
  tell_of(program, tensor, false);
}

void SimMachine::tell_of(const SimProgram& program, TensorId tensor, bool keeps_bytes) {
  if (dead_stays_) return;
  const TensorId id{program.job.first_tensor + tensor.value};
  push(Allocated{id, program.job.layout.tensors[tensor.value], label_of(id), keeps_bytes});
}

void SimMachine::free(const SimProgram& program, TensorId tensor) {
  if (pool_) pool_->free(tensor);
  if (dead_stays_) return;
  push(Freed{{program.job.first_tensor + tensor.value}, program.job.layout.tensors[tensor.value]});
}

void SimMachine::announce_kernel(SimProgram& program) {
  for (const TensorId tensor : program.job.lifetimes.births[program.kernel]) allocate(program, tensor);
  program.accesses = program.job.layout.accesses(program.job.trace, program.current(), whole_tensors_);
  for (BlockAccess& access : program.accesses) access.tensor.value += program.job.first_tensor;
  program.step = Step::ready;
  program.ready_at = now_;
  ++program.serial;
  push(KernelReady{.launch = {program.stream, program.serial},
                   .kernel = program.kernel_id(),
                   .accesses = program.accesses,
                   .execution = execution_of(program.kernel_id()),
                   .plan = plan_});
}

// The block, or the next piece of it, that the kernel misses.
std::optional<BlockId> SimMachine::absent(SimProgram& program, BlockId block) {
  if (is_there(block)) return std::nullopt;
  if (places_[block.value].where != Where::in_pieces) return block;
  for (const BlockRange pieces = pieces_of(block); program.in_block < pieces.count; ++program.in_block) {
    const BlockId piece{pieces.first.value + program.in_block};
    if (at(piece).where != Where::device && bytes_of(piece) > Bytes{}) return piece;
  }
  return std::nullopt;
}

void SimMachine::touch(SimProgram& program) {
  for (; program.access < program.accesses.size(); ++program.access, program.in_access = 0) {
    const BlockRange blocks = program.accesses[program.access].blocks;
    for (; program.in_access < blocks.count; ++program.in_access, program.in_block = 0) {
      const BlockId block{blocks.first.value + program.in_access};
      if (is_there(block)) continue;
      const auto missed = absent(program, block);
      if (!missed) continue;
      if (std::exchange(at(*missed).parked, false)) return push(Touched{*missed});
      // One service after the other: what leaves to make room for this one is not called back before that is over, or
      // it would leave and be called back again and again.
      return program.announced.empty() ? announce(program, *missed) : void();
    }
  }
  program.announced.clear();
  program.waits[program.kernel] = now_ - program.ready_at;
  program.hidden[program.kernel] = {};
  program.iterations.back().waited += program.waits[program.kernel];
  if (now_ > program.ready_at) ++program.iterations.back().stalled_kernels;
  program.step = Step::computing;
  program.work = static_cast<double>(program.current().duration.value);
}

// One service of page faults: what is missed, and what the kernel touches next of what lies below, as long as one batch
// takes it. What is on its way already needs no service; what has no bytes yet, or is split, is looked at when its turn
// comes.
void SimMachine::announce(SimProgram& program, BlockId first) {
  if (at(first).where == Where::nowhere && !is_piece(first)) return announce_first_touches(program, first);
  const auto lies_below = [](Place place) { return place.where == Where::host || place.where == Where::ssd; };
  const auto faults_of = [&](BlockId block) { return faults_.faults_of(bytes_of(block)); };
  std::uint64_t faults = 0;
  const auto add = [&](BlockId block) {
    program.announced.push_back({.block = block, .handling = {}});
    faults += faults_of(block);
  };
  if (at(first).where != Where::nowhere) ++program.iterations.back().faults;
  add(first);
  bool goes_on = !is_piece(first) && lies_below(at(first)) && faults < faults_.batch;
  std::uint32_t from = program.in_access + 1;
  for (std::size_t access = program.access; goes_on && access < program.accesses.size(); ++access, from = 0) {
    const BlockRange blocks = program.accesses[access].blocks;
    for (std::uint32_t in_access = from; goes_on && in_access < blocks.count; ++in_access) {
      const BlockId block{blocks.first.value + in_access};
      const Place place = at(block);
      goes_on = place.where != Where::nowhere && place.where != Where::in_pieces;
      if (!goes_on || !lies_below(place) || program.has_announced(block)) continue;
      goes_on = faults + faults_of(block) <= faults_.batch;
      if (!goes_on) break;
      ++program.iterations.back().faults;
      add(block);
    }
  }
  const Nanos time = faults_.time(faults);
  Nanos rest = time;
  PerTier<bool> paid;
  for (SimProgram::Announced& one : program.announced) {
    const bool is_last = &one == &program.announced.back();
    one.handling = is_last ? rest : Nanos{time.value * faults_of(one.block) / faults};
    rest -= one.handling;
    const Where below = at(one.block).where;
    one.pays_latency = below == Where::host ? !std::exchange(paid.host, true) : !std::exchange(paid.ssd, true);
    push(Faulted{program.stream, {one.block, 1}});
  }
}

// Most of what kernels touch for the first time is as large as tensors are.
void SimMachine::announce_first_touches(SimProgram& program, BlockId first) {
  constexpr std::uint32_t kMost = 32;  // Where there is room for less, they are counted again and again.
  const BlockRange blocks = program.accesses[program.access].blocks;
  const std::uint32_t most = std::min(blocks.count - program.in_access - 1, kMost);
  std::uint32_t next = 0;
  while (next < most && places_[first.value + 1 + next].where == Where::nowhere) ++next;
  program.announced.push_back({.block = first, .handling = {}});
  push(Faulted{.stream = program.stream, .blocks = {first, 1}, .touched_next = next});
}

// What leaves again before it is touched faults again.
void SimMachine::arrive(BlockRange blocks) {
  for (SimProgram& program : programs_)
    std::erase_if(program.announced, [&](const auto& announced) { return blocks.contains(announced.block); });
}

// Who waits for the block, or for a piece of it, faults again on what it is now: with several jobs its fault may still
// be queued behind the event that the command answers.
void SimMachine::look_again(BlockId block) {
  std::erase_if(events_, [&](const Event& event) {
    const auto* fault = std::get_if<Faulted>(&event);
    return fault != nullptr && block_of(fault->blocks.first) == block;
  });
  for (SimProgram& program : programs_)
    std::erase_if(program.announced, [&](const auto& announced) { return block_of(announced.block) == block; });
}

void SimMachine::finish_kernel(SimProgram& program) {
  push(KernelDone{{program.stream, program.serial}});
  for (const TensorId tensor : program.job.lifetimes.deaths[program.kernel]) free(program, tensor);
  if (++program.kernel < program.job.trace.kernels.size()) {
    program.step = Step::gap;
    program.deadline = now_ + program.current().gap;
    return;
  }
  program.step = Step::over;
  program.iterations.back().end = now_;
  if (flash_) program.iterations.back().flash = flash_->work();
  if (program.job.iterations == 0) return;
  if (program.iterations.size() == 1) has_changed_ = true;
  if (program.iterations.size() < program.job.iterations)
    begin_iteration(program);
  else
    leave(program);
}

}  // namespace spillway
