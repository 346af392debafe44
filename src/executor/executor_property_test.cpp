#include "executor/executor.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "executor/executor_script.h"
#include "plan/plan.h"

namespace spillway {
namespace {

// The numbers that a whole run is made of; RapidCheck chooses the seed and shrinks the length.
class Choices {
 public:
  Choices(std::uint64_t seed, std::uint32_t length) : state_(seed), left_(length) {}
  std::uint32_t below(std::uint32_t limit) {
    if (left_ > 0) --left_;
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 33) % limit;
  }
  bool used_up() const { return left_ == 0; }

 private:
  std::uint64_t state_;
  std::uint32_t left_;
};

// A block's pieces, or the piece itself, as indices.
std::vector<std::uint32_t> pieces_in(BlockRange blocks) {
  std::vector<std::uint32_t> pieces;
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value) {
    const BlockRange range = is_piece(block) ? BlockRange{block, 1} : pieces_of(block);
    for (BlockId piece = range.first; piece < range.end(); ++piece.value) pieces.push_back(piece.value - kFirstPiece);
  }
  return pieces;
}

// Holds real contents (a stamp for each piece of a block), finishes moves in any order, fails some, is late with
// cancels, and refuses to drop dead pieces. What leaves as clean must be as its copy if `all_is_told`: all writes are
// those of kernels that say so.
class HostileMachine {
 public:
  HostileMachine(std::uint32_t blocks, std::uint32_t frames, bool failing, bool all_is_told)
      : device_(blocks * kPiecesPerBlock),
        below_(blocks * kPiecesPerBlock),
        frames_(frames * kPiecesPerBlock),
        failing_(failing),
        all_is_told_(all_is_told) {}

  void submit(const std::vector<Command>& commands, std::set<LaunchId>& launched) {
    for (const Command& command : commands) {
      if (const auto* move = std::get_if<Move>(&command)) {
        check(move->blocks);
        flights_.push_back({*move, {}, false});
        if (move->to == Tier::device) take_frames(move->blocks);
        for (const std::uint32_t piece : pieces_in(move->blocks)) {
          auto& from = move->from == Tier::device ? device_[piece] : below_[piece];
          CHECK(from.has_value());
          flights_.back().bytes.push_back(*from);
          if (move->from != Tier::device) continue;
          if (!is_piece(move->blocks.first)) CHECK(below_[piece].has_value() == move->clean);
          if (move->clean && all_is_told_) CHECK(*below_[piece] == *from);
          from.reset();  // Unmapped from here on.
        }
      } else if (const auto* populate = std::get_if<Populate>(&command)) {
        check(populate->blocks);
        take_frames(populate->blocks);
        for (const std::uint32_t piece : pieces_in(populate->blocks)) {
          CHECK(!device_[piece] || kept_.erase(piece) == 1);
          map(piece, device_[piece].value_or(0));
        }
      } else if (const auto* discard = std::get_if<Discard>(&command)) {
        drop(*discard);
      } else if (const auto* split = std::get_if<Split>(&command)) {
        CHECK(split_.insert(split->block).second);
        for (const std::uint32_t piece : pieces_in({split->block, 1})) {
          CHECK(below_[piece] && !device_[piece]);
          mapped_.push_back(piece);
        }
        ++splits;
      } else if (const auto* join = std::get_if<Join>(&command)) {
        CHECK(split_.erase(join->block) == 1);
        for (const std::uint32_t piece : pieces_in({join->block, 1})) {
          CHECK(!device_[piece]);
          below_[piece] = below_[piece].value_or(0);
          mapped_.push_back(piece);
        }
      } else if (const auto* park = std::get_if<Park>(&command)) {
        CHECK(device_[pieces_in({park->block, 1}).front()] && !split_.contains(park->block));
        if (++parks % 3 > 0) parked_.insert(park->block);  // It may do nothing.
      } else if (const auto* timer = std::get_if<Timer>(&command)) {
        CHECK(timer->delay > Nanos{});
        timers_.push_back(timer->timer);
        ++timers;
      } else if (const auto* cancel = std::get_if<Cancel>(&command)) {
        const auto flight = std::ranges::find(flights_, cancel->move, [](const Flight& f) { return f.move.id; });
        CHECK(flight != flights_.end());
        flight->cancelled = true;
      } else {
        CHECK(launched.insert(std::get<Launch>(command).launch).second);
      }
    }
  }

  bool busy() const { return !flights_.empty() || !timers_.empty(); }

  // Told before anything else.
  std::optional<Event> next_refused() {
    if (refused_.empty()) return std::nullopt;
    const BlockId piece = refused_.front();
    refused_.pop_front();
    return Faulted{kNobody, {piece, 1}};
  }

  // In any order: it knows no time.
  Event finish_one(Choices& choices) {
    if (const auto all = timers_.size() + flights_.size();
        choices.below(static_cast<std::uint32_t>(all)) < timers_.size()) {
      const auto timer = timers_.begin() + choices.below(static_cast<std::uint32_t>(timers_.size()));
      const Elapsed elapsed{*timer};
      timers_.erase(timer);
      return elapsed;
    }
    const auto at = flights_.begin() + choices.below(static_cast<std::uint32_t>(flights_.size()));
    const Flight flight = std::move(*at);
    flights_.erase(at);
    const bool read = flight.move.to == Tier::device;
    const bool refused = read && failing_ && choices.below(3) == 0;  // However often: room is short for the moment.
    const bool cancelled = refused || (flight.cancelled && choices.below(4) > 0);
    // Never four in a row of a tier's writes or of a block's reads: that is the end.
    std::uint32_t& failures = read ? failed_reads_[flight.move.blocks.first.value] : failed_writes_[flight.move.to];
    const bool failed = !cancelled && failing_ && ++moves_ % 5 == 0 && failures < 3;
    // That a clean block has left shows nothing of writes: it may have been dropped.
    if (failed || (!cancelled && (read || !flight.move.clean))) failures = failed ? failures + 1 : 0;
    const std::vector<std::uint32_t> pieces = pieces_in(flight.move.blocks);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (cancelled || failed) {
        if (flight.move.from == Tier::device) {
          map(pieces[i], flight.bytes[i]);
          below_[pieces[i]].reset();
        }
      } else if (flight.move.to == Tier::device) {
        map(pieces[i], flight.bytes[i]);
        if (!flight.move.clean) below_[pieces[i]].reset();
      } else {
        below_[pieces[i]] = flight.bytes[i];
      }
    }
    const bool moved = !cancelled && !failed;
    if (moved == (flight.move.from == Tier::device)) in_use_ -= pieces.size();
    if (!moved) return MoveFailed{flight.move.id, cancelled};
    return MoveDone{flight.move.id};
  }

  std::optional<std::uint64_t>& on_device(std::uint32_t piece) { return device_[piece]; }
  // What a fault on it names.
  BlockId faults_on(std::uint32_t piece) const {
    const BlockId block{piece / kPiecesPerBlock};
    return split_.contains(block) ? BlockId{kFirstPiece + piece} : block;
  }

  // Pieces that have been mapped since the last call: whoever waits for them tries again, even if they are gone again.
  std::vector<std::uint32_t> take_mapped() { return std::exchange(mapped_, {}); }

  // True if the block of this piece was parked, and is no more.
  bool comes_back_on(std::uint32_t piece) { return parked_.erase({piece / kPiecesPerBlock}) > 0; }

  static inline std::uint64_t splits = 0, parks = 0, timers = 0;

 private:
  struct Flight {
    Move move;
    std::vector<std::uint64_t> bytes;
    bool cancelled;
  };
  // Only split blocks move in pieces, and only in pieces.
  void check(BlockRange blocks) const {
    for (BlockId block = blocks.first; block < blocks.end(); ++block.value)
      CHECK(is_piece(block) == split_.contains(block_of(block)));
  }
  void drop(const Discard& discard) {
    for (BlockId block = discard.blocks.first; block < discard.blocks.end(); ++block.value) {
      if (!is_piece(block) && split_.erase(block) > 0) {
        CHECK(discard.tier == Tier::ssd);
        for (const std::uint32_t piece : pieces_in({block, 1})) {
          CHECK(!device_[piece]);
          below_[piece].reset();
        }
        continue;
      }
      for (const std::uint32_t piece : pieces_in({block, 1})) {
        auto& from = discard.tier == Tier::device ? device_[piece] : below_[piece];
        CHECK(from.has_value());
        if (discard.tier == Tier::device) --in_use_;
        // Its frame is not given up, though the executor believes it.
        if (discard.tier == Tier::device && is_piece(block) && failing_ && ++drops_ % 3 == 0) {
          CHECK(kept_.insert(piece).second);
          refused_.push_back(block);
        } else {
          from.reset();
        }
      }
    }
  }
  void map(std::uint32_t piece, std::uint64_t bytes) {
    device_[piece] = bytes;
    mapped_.push_back(piece);
  }
  // Mapped, leaving and arriving blocks; the executor's own account is not asked.
  void take_frames(BlockRange blocks) {
    in_use_ += pieces_in(blocks).size();
    CHECK(in_use_ <= frames_);
  }

  std::vector<std::optional<std::uint64_t>> device_, below_;  // by piece
  std::set<BlockId> split_;
  std::set<BlockId> parked_;  // and some that have left since
  std::set<std::uint32_t> kept_;
  std::deque<BlockId> refused_;
  std::vector<std::uint32_t> mapped_;
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> timers_;
  std::size_t frames_, in_use_ = 0;  // in pieces
  bool failing_, all_is_told_;
  std::uint32_t moves_ = 0, drops_ = 0;
  PerTier<std::uint32_t> failed_writes_;
  std::map<std::uint32_t, std::uint32_t> failed_reads_;
};

constexpr std::uint32_t kChunk = 3;    // the most blocks in a move
constexpr std::uint32_t kKernels = 8;  // in a plan's iteration
constexpr std::uint32_t kTensors = 60;
constexpr std::size_t kInFlight = 3;  // the most launches on a stream

// Moves of any tensor at any time, whether it is alive then or not; some late, some that kernels wait for.
Plan random_plan(std::uint64_t seed) {
  Choices choices(seed, 0);
  const bool copies = choices.below(2) == 0, timed = choices.below(2) == 0;
  const auto delay = [&] { return timed && choices.below(3) == 0 ? Nanos{1 + choices.below(100)} : Nanos{}; };
  const auto awaited = [&] {
    return timed && choices.below(3) == 0 ? std::optional(KernelId{choices.below(kKernels)}) : std::nullopt;
  };
  Plan plan;
  for (std::uint32_t kernel = 0; kernel < kKernels; ++kernel)
    for (std::uint32_t tensor = 0; tensor < kTensors; ++tensor) {
      if (choices.below(6) == 0)
        plan.evictions.push_back({{tensor},
                                  {kernel},
                                  choices.below(2) == 0 ? Tier::host : Tier::ssd,
                                  delay(),
                                  timed && kernel % 2 == 0,
                                  awaited()});
      if (choices.below(6) == 0)
        plan.prefetches.push_back({{tensor}, {kernel}, copies && choices.below(2) == 0, delay(), awaited()});
    }
  return plan;
}

// Says anything about what comes next.
class Liar final : public OnlinePolicy {
 public:
  Liar(std::uint64_t seed, std::uint32_t blocks)
      : choices_(seed, UINT32_MAX), blocks_(blocks), faults_alone_(seed % 2 == 0) {}
  void allocated(const Allocated&, const PageTable&) override {}
  void freed(const Freed&) override {}
  std::vector<BlockRange> faulted(const Faulted&, const PageTable&) override { return some(); }
  Forecast kernel_ready(const KernelReady&, bool wanted) override {
    Forecast forecast{
        .anew = choices_.below(3) == 0, .added = {}, .prefetches = some(), .births = kBlockBytes * choices_.below(4)};
    for (std::uint32_t kernels = choices_.below(4); wanted && kernels > 0; --kernels) forecast.added.push_back(some());
    return forecast;
  }
  bool learns_from_faults_alone() const override { return faults_alone_; }

 private:
  std::vector<BlockRange> some() {
    std::vector<BlockRange> result;
    for (std::uint32_t ranges = choices_.below(3); ranges > 0; --ranges) {
      const std::uint32_t first = choices_.below(blocks_);
      result.push_back({{first}, 1 + choices_.below(std::min(4u, blocks_ - first))});
    }
    return result;
  }

  Choices choices_;
  std::uint32_t blocks_;
  bool faults_alone_;
};

// A program of several streams that allocate, run kernels and free, with the contents that every block must have.
class RandomProgram {
 public:
  struct Shape {
    std::uint32_t blocks, streams, device_blocks, host_blocks, ssd_blocks;
    bool faults, keeps_copies, keep_dead, failing, planned, homes, online, all_is_told;
    std::uint64_t plan_seed;
  };

  RandomProgram(const Shape& shape, Choices& choices)
      : shape_(shape),
        choices_(choices),
        machine_(shape.blocks, shape.device_blocks, shape.failing, shape.all_is_told),
        expected_(shape.blocks * kPiecesPerBlock),
        streams_(shape.streams),
        plan_(shape.planned ? random_plan(shape.plan_seed) : Plan{}),
        executor_(table(shape), options(shape),
                  shape.online ? std::make_unique<Liar>(shape.plan_seed, shape.blocks) : nullptr) {
    for (std::uint32_t tensor = 0; tensor < kTensors && shape.homes; ++tensor) {
      const std::uint32_t first = choices.below(shape.blocks);
      homes_.push_back({{first}, 1 + choices.below(std::min(4u, shape.blocks - first))});
    }
    if (shape.homes) births_.resize(kKernels);
    for (const BlockRange& home : homes_) {
      rows_.push_back({home, {{choices.below(kKernels)}}});
      if (choices.below(4) == 0) births_[choices.below(kKernels)].push_back(home);
    }
    if (shape.planned || !shape.online) adopt(executor_, plan_, kKernels, homes_, rows_, births_);
  }

  // Runs until the choices are used up, then lets everything come to its end.
  void run() {
    for (std::uint32_t steps = 0; !choices_.used_up() || !quiet(); ++steps) {
      RC_ASSERT(steps < 100'000u);  // Nothing hangs.
      step();
      executor_.check_invariants();
      if (const auto failure = executor_.failure())
        RC_FAIL("gave up: kind " + std::to_string(static_cast<int>(failure->kind)));
    }
  }

 private:
  struct InFlight {
    LaunchId launch;
    std::vector<BlockAccess> accesses;
    struct Touch {
      std::uint32_t piece;
      bool writes;
    };
    std::vector<Touch> touches;  // still to come, the last one first
    bool queued = false, faulted = false;
    bool lets_leave = false;  // what it reads, and it only reads
  };
  struct Stream {
    std::uint32_t serial = 0;
    std::deque<InFlight> in_flight;  // the first one runs
    bool is_idle() const { return in_flight.empty(); }
  };

  static PageTable table(const Shape& shape) {
    PageTable table(
        {kBlockBytes * shape.device_blocks, kBlockBytes * shape.host_blocks, kBlockBytes * shape.ssd_blocks});
    table.add_blocks(shape.blocks, kBlockBytes);
    return table;
  }
  static ExecutorOptions options(const Shape& shape) {
    return {.kernels_fault = shape.faults,
            .window_blocks = 2,
            .migration = {.keeps_copies = shape.keeps_copies,
                          .keep_dead_blocks = shape.keep_dead,
                          .chunk_blocks = kChunk,
                          .planned_in_flight = 2}};
  }

  bool quiet() const { return !machine_.busy() && std::ranges::all_of(streams_, &Stream::is_idle); }

  void tell(const Event& event) {
    std::vector<Command> commands;
    executor_.on(event, commands);
    machine_.submit(commands, launched_);
    while (const auto refused = machine_.next_refused()) {
      executor_.check_invariants();
      commands.clear();
      executor_.on(*refused, commands);
      machine_.submit(commands, launched_);
    }
    for (const std::uint32_t piece : machine_.take_mapped())
      for (Stream& stream : streams_)
        if (!stream.is_idle()) {
          InFlight& runs = stream.in_flight.front();
          if (runs.faulted && runs.touches.back().piece == piece) runs.faulted = false;
        }
  }

  void step() {
    const std::uint32_t what = choices_.below(6);
    if (machine_.busy() && (what == 0 || choices_.used_up())) return tell(machine_.finish_one(choices_));
    const std::uint32_t index = choices_.below(shape_.streams);
    if (!streams_[index].is_idle()) {
      InFlight& latest = streams_[index].in_flight.back();
      const bool can_queue = launched_.contains(latest.launch) && !latest.queued;
      if (can_queue && choices_.below(3) == 0) {
        latest.queued = true;
        return tell(KernelQueued{latest.launch});
      }
      const bool can_start = latest.queued && streams_[index].in_flight.size() < kInFlight && !choices_.used_up();
      if (!can_start || choices_.below(2) == 0) return touch(index);
    }
    if (choices_.used_up()) return;
    // More tensors than the device holds, most of the time.
    if (tensors_.size() < 6 + what && allocate()) return;
    if (tensors_.empty()) return;
    if (what == 4) return free_one();
    start_kernel(index);
  }

  // False if the tiers, less what must stay free for moves, would not hold it.
  bool allocate() {
    const std::uint32_t first = choices_.below(shape_.blocks);
    const std::uint32_t count = 1 + choices_.below(std::min(4u, shape_.blocks - first));
    const BlockRange blocks{{first}, count};
    std::uint32_t in_use = 0;
    for (std::uint32_t block = 0; block < shape_.blocks; ++block)
      in_use += blocks.contains({block}) ||
                std::ranges::any_of(tensors_, [&](const auto& tensor) { return tensor.second.contains({block}); });
    if (in_use + kChunk > shape_.device_blocks + shape_.host_blocks + shape_.ssd_blocks) return false;
    const TensorId id{next_tensor_++};
    tensors_[id] = blocks;
    tell(Allocated{id, blocks});
    return true;
  }

  void free_one() {
    auto tensor = std::next(tensors_.begin(), choices_.below(static_cast<std::uint32_t>(tensors_.size())));
    for (const Stream& stream : streams_)  // A tensor in use is not freed: that is the program's duty.
      for (const InFlight& kernel : stream.in_flight)
        for (const BlockAccess& access : kernel.accesses)
          if (access.blocks == tensor->second) return;
    const auto [id, blocks] = *tensor;
    tensors_.erase(tensor);
    for (BlockId block = blocks.first; block < blocks.end(); ++block.value)
      if (std::ranges::none_of(tensors_, [&](const auto& other) { return other.second.contains(block); }))
        for (const std::uint32_t piece : pieces_in({block, 1})) expected_[piece].reset();
    tell(Freed{id, blocks});
  }

  void start_kernel(std::uint32_t index) {
    Stream& stream = streams_[index];
    InFlight& kernel = stream.in_flight.emplace_back();
    kernel.launch = {{index}, ++stream.serial};
    const std::uint32_t place = choices_.below(kKernels + 1);
    kernel.lets_leave = std::ranges::any_of(
        plan_.evictions, [&](const Eviction& one) { return one.during && one.after == KernelId{place}; });
    std::uint32_t bytes = 0;
    for (const auto& [id, blocks] : tensors_) {
      if (choices_.below(2) == 0) continue;
      if (!shape_.faults && bytes + blocks.count > shape_.device_blocks) continue;
      bytes += blocks.count;
      kernel.accesses.push_back({.blocks = blocks, .writes = !kernel.lets_leave && choices_.below(2) == 0});
    }
    for (const BlockAccess& access : kernel.accesses)
      for (BlockId block = access.blocks.first; block < access.blocks.end(); ++block.value)
        kernel.touches.push_back({place_in(block), access.writes || (!shape_.all_is_told && !kernel.lets_leave)});
    // Where it uses more than the device it comes back to what has left.
    for (std::size_t again = choices_.below(3) * kernel.touches.size(); again > 0; --again)
      kernel.touches.push_back(kernel.touches[choices_.below(static_cast<std::uint32_t>(kernel.touches.size()))]);
    tell(KernelReady{kernel.launch, place < kKernels ? KernelId{place} : kNoKernel, kernel.accesses});
  }

  // One of a few of its pieces, for these to be touched again and one after the other.
  std::uint32_t place_in(BlockId block) {
    constexpr std::array<std::uint32_t, 5> kPlaces{0, 1, 2, 7, kPiecesPerBlock - 1};
    return pieces_of(block).first.value - kFirstPiece + kPlaces[choices_.below(kPlaces.size())];
  }

  void touch(std::uint32_t index) {
    InFlight& kernel = streams_[index].in_flight.front();
    if (!launched_.contains(kernel.launch)) return;
    if (kernel.touches.empty()) {
      const LaunchId done = kernel.launch;
      streams_[index].in_flight.pop_front();
      return tell(KernelDone{done});
    }
    const auto [piece, writes] = kernel.touches.back();
    auto& bytes = machine_.on_device(piece);
    if (!bytes) {
      // Without faults everything must be there at the launch, and stays but for what leaves during it.
      if (!shape_.faults && !writes && kernel.lets_leave) return kernel.touches.pop_back();
      RC_ASSERT(shape_.faults);
      if (kernel.faulted && choices_.below(4) > 0) return;  // A signal ends the wait now and then.
      kernel.faulted = true;
      const BlockId block = machine_.faults_on(piece);
      return tell(Faulted{{index}, {block, 1}, choices_.below(4) == 0, touched_behind(kernel, block)});
    }
    if (machine_.comes_back_on(piece)) return tell(Touched{{piece / kPiecesPerBlock}});
    if (expected_[piece]) RC_ASSERT(*bytes == *expected_[piece]);
    if (writes) expected_[piece] = bytes = ++stamp_;
    kernel.touches.pop_back();
  }

  // Some of the blocks behind it that the kernel uses, too: whatever their state is.
  std::uint32_t touched_behind(const InFlight& kernel, BlockId block) {
    for (const BlockAccess& access : kernel.accesses)
      if (!is_piece(block) && access.blocks.contains(block))
        return choices_.below(access.blocks.end().value - block.value);
    return 0;
  }

  Shape shape_;
  Choices& choices_;
  HostileMachine machine_;
  std::vector<std::optional<std::uint64_t>> expected_;  // by piece; nothing where any bytes will do
  std::vector<Stream> streams_;
  std::set<LaunchId> launched_;
  std::map<TensorId, BlockRange> tensors_;
  Plan plan_;
  std::vector<BlockRange> homes_;  // of the plan's tensors, where the plan says where they lie
  std::vector<Foresight::Row> rows_;
  std::vector<std::vector<BlockRange>> births_;
  Executor executor_;
  std::uint32_t next_tensor_ = 0;
  std::uint64_t stamp_ = 0;
};

void check_random_programs(bool faults) {
  HostileMachine::splits = HostileMachine::parks = HostileMachine::timers = 0;
  EXPECT_TRUE(rc::check([faults] {
    Choices choices(*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::resize(100, rc::gen::inRange(0u, 3000u)));
    const std::uint32_t streams = faults ? *rc::gen::inRange(1u, 4u) : 1;
    RandomProgram({.blocks = 24,
                   .streams = streams,
                   .device_blocks = *rc::gen::inRange(streams * 2 + 2, 12u),
                   .host_blocks = *rc::gen::inRange(0u, 6u),
                   .ssd_blocks = *rc::gen::element(4u, 8u, 1000u),
                   .faults = faults,
                   .keeps_copies = *rc::gen::arbitrary<bool>(),
                   .keep_dead = *rc::gen::arbitrary<bool>(),
                   .failing = *rc::gen::arbitrary<bool>(),
                   .planned = *rc::gen::arbitrary<bool>(),
                   .homes = *rc::gen::arbitrary<bool>(),
                   .online = *rc::gen::arbitrary<bool>(),
                   .all_is_told = *rc::gen::arbitrary<bool>(),
                   .plan_seed = *rc::gen::arbitrary<std::uint64_t>()},
                  choices)
        .run();
  }));
  EXPECT_GT(HostileMachine::timers, 0u);
  EXPECT_EQ(HostileMachine::parks > 0, faults);
  EXPECT_EQ(HostileMachine::splits > 0, faults) << "kernels that fault come back to what has left meanwhile";
}

TEST(ExecutorProperty, NoOrderOfEventsLosesBytesOrExceedsTheBudgetWhenKernelsFault) { check_random_programs(true); }

TEST(ExecutorProperty, KernelsThatCannotFaultStartWithTheirWholeWorkingSet) { check_random_programs(false); }

}  // namespace
}  // namespace spillway
