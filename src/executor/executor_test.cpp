#include "executor/executor.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
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

// Holds real contents (a stamp for each block), finishes moves in any order, fails some, and is late with cancels. What
// leaves as clean must be as its copy if `all_is_told`: all writes are those of kernels that say so.
class HostileMachine {
 public:
  HostileMachine(std::uint32_t blocks, std::uint32_t frames, bool failing, bool all_is_told)
      : device_(blocks), below_(blocks), frames_(frames), failing_(failing), all_is_told_(all_is_told) {}

  void submit(const std::vector<Command>& commands, std::vector<bool>& launched) {
    for (const Command& command : commands) {
      if (const auto* move = std::get_if<Move>(&command)) {
        flights_.push_back({*move, {}, false});
        if (move->to == Tier::device) take_frames(move->blocks.count);
        for (BlockId block = move->blocks.first; block < move->blocks.end(); ++block.value) {
          auto& from = move->from == Tier::device ? device_[block.value] : below_[block.value];
          CHECK(from.has_value());
          flights_.back().bytes.push_back(*from);
          if (move->from != Tier::device) continue;
          CHECK(below_[block.value].has_value() == move->clean);
          if (move->clean && all_is_told_) CHECK(*below_[block.value] == *from);
          from.reset();  // Unmapped from here on.
        }
      } else if (const auto* populate = std::get_if<Populate>(&command)) {
        take_frames(populate->blocks.count);
        for (BlockId block = populate->blocks.first; block < populate->blocks.end(); ++block.value) {
          CHECK(!device_[block.value]);
          map(block.value, 0);
        }
      } else if (const auto* discard = std::get_if<Discard>(&command)) {
        for (BlockId block = discard->blocks.first; block < discard->blocks.end(); ++block.value) {
          auto& from = discard->tier == Tier::device ? device_[block.value] : below_[block.value];
          CHECK(from.has_value());
          from.reset();
        }
        if (discard->tier == Tier::device) in_use_ -= discard->blocks.count;
      } else if (const auto* cancel = std::get_if<Cancel>(&command)) {
        const auto flight = std::ranges::find(flights_, cancel->move, [](const Flight& f) { return f.move.id; });
        CHECK(flight != flights_.end());
        flight->cancelled = true;
      } else {
        launched[std::get<Launch>(command).stream.value] = true;
      }
    }
  }

  bool busy() const { return !flights_.empty(); }

  Event finish_one(Choices& choices) {
    const auto at = flights_.begin() + choices.below(static_cast<std::uint32_t>(flights_.size()));
    const Flight flight = std::move(*at);
    flights_.erase(at);
    const bool cancelled = flight.cancelled && choices.below(4) > 0;
    // Never four in a row of a tier's writes or of a block's reads: that is the end.
    const bool read = flight.move.to == Tier::device;
    std::uint32_t& failures = read ? failed_reads_[flight.move.blocks.first.value] : failed_writes_[flight.move.to];
    const bool failed = !cancelled && failing_ && ++moves_ % 5 == 0 && failures < 3;
    // That a clean block has left shows nothing of writes: it may have been dropped.
    if (failed || (!cancelled && (read || !flight.move.clean))) failures = failed ? failures + 1 : 0;
    for (std::uint32_t i = 0; i < flight.move.blocks.count; ++i) {
      const std::uint32_t block = flight.move.blocks.first.value + i;
      if (cancelled || failed) {
        if (flight.move.from == Tier::device) {
          map(block, flight.bytes[i]);
          below_[block].reset();
        }
      } else if (flight.move.to == Tier::device) {
        map(block, flight.bytes[i]);
        if (!flight.move.clean) below_[block].reset();
      } else {
        below_[block] = flight.bytes[i];
      }
    }
    const bool moved = !cancelled && !failed;
    if (moved == (flight.move.from == Tier::device)) in_use_ -= flight.move.blocks.count;
    if (!moved) return MoveFailed{flight.move.id, cancelled};
    return MoveDone{flight.move.id};
  }

  std::optional<std::uint64_t>& on_device(std::uint32_t block) { return device_[block]; }

  // Blocks that have been mapped since the last call: whoever waits for them tries again, even if they are gone again.
  std::vector<std::uint32_t> take_mapped() { return std::exchange(mapped_, {}); }

 private:
  struct Flight {
    Move move;
    std::vector<std::uint64_t> bytes;
    bool cancelled;
  };
  void map(std::uint32_t block, std::uint64_t bytes) {
    device_[block] = bytes;
    mapped_.push_back(block);
  }
  // Mapped, leaving and arriving blocks; the executor's own account is not asked.
  void take_frames(std::uint32_t count) {
    in_use_ += count;
    CHECK(in_use_ <= frames_);
  }

  std::vector<std::optional<std::uint64_t>> device_, below_;
  std::vector<std::uint32_t> mapped_;
  std::vector<Flight> flights_;
  std::uint32_t frames_, in_use_ = 0;
  bool failing_, all_is_told_;
  std::uint32_t moves_ = 0;
  PerTier<std::uint32_t> failed_writes_;
  std::map<std::uint32_t, std::uint32_t> failed_reads_;
};

constexpr std::uint32_t kPiece = 3;    // the most blocks in a move
constexpr std::uint32_t kKernels = 8;  // in a plan's iteration
constexpr std::uint32_t kTensors = 60;

// Moves of any tensor at any time, whether it is alive then or not.
Plan random_plan(std::uint64_t seed) {
  Choices choices(seed, 0);
  const bool copies = choices.below(2) == 0;
  Plan plan;
  for (std::uint32_t kernel = 0; kernel < kKernels; ++kernel)
    for (std::uint32_t tensor = 0; tensor < kTensors; ++tensor) {
      if (choices.below(6) == 0)
        plan.evictions.push_back({{tensor}, {kernel}, choices.below(2) == 0 ? Tier::host : Tier::ssd});
      if (choices.below(6) == 0) plan.prefetches.push_back({{tensor}, {kernel}, copies && choices.below(2) == 0});
    }
  return plan;
}

// Says anything about what comes next.
class Liar final : public OnlinePolicy {
 public:
  Liar(std::uint64_t seed, std::uint32_t blocks) : choices_(seed, UINT32_MAX), blocks_(blocks) {}
  void allocated(const Allocated&) override {}
  void freed(const Freed&) override {}
  void faulted(const Faulted&) override {}
  Forecast kernel_ready(const KernelReady&, bool wanted) override {
    Forecast forecast{.anew = choices_.below(3) == 0, .added = {}, .births = kBlockBytes * choices_.below(4)};
    for (std::uint32_t kernels = choices_.below(4); wanted && kernels > 0; --kernels) {
      ExpectedUse& use = forecast.added.emplace_back();
      for (std::uint32_t ranges = choices_.below(3); ranges > 0; --ranges) {
        const std::uint32_t first = choices_.below(blocks_);
        use.push_back({{first}, 1 + choices_.below(std::min(4u, blocks_ - first))});
      }
    }
    return forecast;
  }

 private:
  Choices choices_;
  std::uint32_t blocks_;
};

// A program of several streams that allocate, run kernels and free, with the contents that every block must have.
class RandomProgram {
 public:
  struct Shape {
    std::uint32_t blocks, streams, device_blocks, host_blocks, ssd_blocks;
    bool faults, keep_dead, failing, planned, homes, online, all_is_told;
    std::uint64_t plan_seed;
  };

  RandomProgram(const Shape& shape, Choices& choices)
      : shape_(shape),
        choices_(choices),
        machine_(shape.blocks, shape.device_blocks, shape.failing, shape.all_is_told),
        expected_(shape.blocks),
        streams_(shape.streams),
        launched_(shape.streams),
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
    if (shape.planned || !shape.online)
      executor_.adopt(plan_, kKernels, {.homes = homes_, .rows = rows_, .births = births_});
  }

  // Runs until the choices are used up, then lets everything come to its end.
  void run() {
    for (std::uint32_t steps = 0; !choices_.used_up() || !quiet(); ++steps) {
      RC_ASSERT(steps < 100'000u);  // Nothing hangs.
      step();
      executor_.table().check_invariants();
      RC_ASSERT(!executor_.failure().has_value());
    }
  }

 private:
  struct Stream {
    std::vector<BlockAccess> accesses;
    struct Touch {
      std::uint32_t block;
      bool writes;
    };
    std::vector<Touch> touches;  // still to come, the last one first
    bool running = false, faulted = false;
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
            .migration = {.keep_dead_blocks = shape.keep_dead, .piece_blocks = kPiece, .planned_in_flight = 2}};
  }

  bool quiet() const { return !machine_.busy() && std::ranges::none_of(streams_, &Stream::running); }

  void tell(const Event& event) {
    std::vector<Command> commands;
    executor_.on(event, commands);
    machine_.submit(commands, launched_);
    for (const std::uint32_t block : machine_.take_mapped())
      for (Stream& stream : streams_)
        if (stream.faulted && stream.touches.back().block == block) stream.faulted = false;
  }

  void step() {
    const std::uint32_t what = choices_.below(6);
    if (machine_.busy() && (what == 0 || choices_.used_up())) return tell(machine_.finish_one(choices_));
    const std::uint32_t index = choices_.below(shape_.streams);
    if (streams_[index].running) return touch(index);
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
    if (in_use + kPiece > shape_.device_blocks + shape_.host_blocks + shape_.ssd_blocks) return false;
    const TensorId id{next_tensor_++};
    tensors_[id] = blocks;
    tell(Allocated{id, blocks});
    return true;
  }

  void free_one() {
    auto tensor = std::next(tensors_.begin(), choices_.below(static_cast<std::uint32_t>(tensors_.size())));
    for (const Stream& stream : streams_)  // A tensor in use is not freed: that is the program's duty.
      if (stream.running)
        for (const BlockAccess& access : stream.accesses)
          if (access.blocks == tensor->second) return;
    const auto [id, blocks] = *tensor;
    tensors_.erase(tensor);
    for (BlockId block = blocks.first; block < blocks.end(); ++block.value)
      if (std::ranges::none_of(tensors_, [&](const auto& other) { return other.second.contains(block); }))
        expected_[block.value].reset();
    tell(Freed{id, blocks});
  }

  void start_kernel(std::uint32_t index) {
    Stream& stream = streams_[index];
    stream.accesses.clear();
    std::uint32_t bytes = 0;
    for (const auto& [id, blocks] : tensors_) {
      if (choices_.below(2) == 0) continue;
      if (!shape_.faults && bytes + blocks.count > shape_.device_blocks) continue;
      bytes += blocks.count;
      stream.accesses.push_back({.blocks = blocks, .writes = choices_.below(2) == 0});
    }
    stream.touches.clear();
    for (const BlockAccess& access : stream.accesses)
      for (BlockId block = access.blocks.first; block < access.blocks.end(); ++block.value)
        stream.touches.push_back({block.value, access.writes || !shape_.all_is_told});
    stream.running = true;
    stream.faulted = false;
    launched_[index] = false;
    const std::uint32_t kernel = choices_.below(kKernels + 1);
    tell(KernelReady{{index}, kernel < kKernels ? KernelId{kernel} : kNoKernel, stream.accesses});
  }

  void touch(std::uint32_t index) {
    Stream& stream = streams_[index];
    if (!launched_[index]) return;
    if (stream.touches.empty()) {
      stream.running = false;
      return tell(KernelDone{{index}});
    }
    const auto [block, writes] = stream.touches.back();
    auto& bytes = machine_.on_device(block);
    if (!bytes) {
      RC_ASSERT(shape_.faults);                             // Without faults everything must be there at the launch.
      if (stream.faulted && choices_.below(4) > 0) return;  // A signal ends the wait now and then.
      stream.faulted = true;
      return tell(Faulted{{index}, {{block}, 1}});
    }
    if (expected_[block]) RC_ASSERT(*bytes == *expected_[block]);
    if (writes) expected_[block] = bytes = ++stamp_;
    stream.touches.pop_back();
  }

  Shape shape_;
  Choices& choices_;
  HostileMachine machine_;
  std::vector<std::optional<std::uint64_t>> expected_;  // by block; nothing where any bytes will do
  std::vector<Stream> streams_;
  std::vector<bool> launched_;
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
  EXPECT_TRUE(rc::check([faults] {
    Choices choices(*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::resize(100, rc::gen::inRange(0u, 3000u)));
    const std::uint32_t streams = faults ? *rc::gen::inRange(1u, 4u) : 1;
    RandomProgram({.blocks = 24,
                   .streams = streams,
                   .device_blocks = *rc::gen::inRange(streams * 2 + 2, 12u),
                   .host_blocks = *rc::gen::inRange(0u, 6u),
                   .ssd_blocks = *rc::gen::element(4u, 8u, 1000u),
                   .faults = faults,
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
}

TEST(Executor, ABlockThatCannotBeReadEndsTheRunThoughOthersCan) {
  PageTable table({kBlockBytes * 4, {}, kBlockBytes * 10});
  table.add_blocks(4, kBlockBytes);
  for (std::uint32_t block = 0; block < 4; ++block) table.place({block}, Tier::ssd);
  Executor executor(std::move(table), {});
  std::vector<Command> commands;
  executor.on(Allocated{{0}, {{0}, 4}}, commands);
  executor.on(Faulted{{0}, {{0}, 1}}, commands);
  for (std::uint32_t other = 1; !executor.failure(); ++other) {
    ASSERT_LE(other, 4u);
    const MoveId bad = std::get<Move>(commands.back()).id;
    if (other < 4) {
      executor.on(Faulted{{1}, {{other}, 1}}, commands);
      executor.on(MoveDone{std::get<Move>(commands.back()).id}, commands);
    }
    executor.on(MoveFailed{bad}, commands);
  }
  EXPECT_EQ(executor.failure()->kind, Failure::Kind::unreadable);
  EXPECT_EQ(executor.failure()->bytes, kBlockBytes);
}

// An instruction of one thread needs two blocks at once, while another thread runs small kernels.
TEST(Executor, AThreadThatWaitsKeepsWhatItHasFaultedInHoweverManyKernelsOthersRun) {
  PageTable table({kBlockBytes * 3, {}, kBlockBytes * 10});
  table.add_blocks(4, kBlockBytes);
  for (std::uint32_t block = 0; block < 4; ++block) table.place({block}, Tier::ssd);
  Executor executor(std::move(table), {.migration = {.piece_blocks = 1}});
  std::vector<Command> commands;
  executor.on(Allocated{{0}, {{0}, 4}}, commands);
  executor.on(Faulted{{0}, {{0}, 1}}, commands);
  executor.on(MoveDone{std::get<Move>(commands.back()).id}, commands);
  executor.on(Faulted{{0}, {{1}, 1}}, commands);
  const MoveId second = std::get<Move>(commands.back()).id;
  for (int kernel = 0; kernel < 40; ++kernel) {
    executor.on(KernelReady{{1}, kNoKernel, {}}, commands);
    executor.on(KernelDone{{1}}, commands);
  }
  EXPECT_TRUE(executor.table().pinned({0}));
  executor.on(MoveDone{second}, commands);
  for (int kernel = 0; kernel < 40; ++kernel) {
    executor.on(KernelReady{{1}, kNoKernel, {}}, commands);
    executor.on(KernelDone{{1}}, commands);
  }
  EXPECT_FALSE(executor.table().pinned({0}));
}

// Two tensors of one block that a plan brings back when kernel 0 starts, the second one once the first has come.
struct TwoPrefetches {
  TwoPrefetches() {
    plan.prefetches = {{{0}, {0}}, {{1}, {0}}};
    plan.evictions = {{{1}, {1}, Tier::ssd}};
    PageTable table({kBlockBytes * 4, {}, kBlockBytes * 10});
    table.add_blocks(2, kBlockBytes);
    for (const std::uint32_t block : {0u, 1u}) table.place({block}, Tier::ssd);
    executor.emplace(std::move(table), ExecutorOptions{});
    executor->adopt(plan, 2);
    for (const std::uint32_t tensor : {0u, 1u}) tell(Allocated{{tensor}, {{tensor}, 1}});
    tell(KernelReady{{0}, {0}, {}});
    first = last_move();
  }
  void tell(const Event& event) { executor->on(event, commands); }
  void start_kernel_1_with(std::uint32_t tensor) {
    const BlockAccess access[] = {{.blocks = {{tensor}, 1}}};
    tell(KernelDone{{0}});
    tell(KernelReady{{0}, {1}, access});
  }
  const Move& last_move() const { return std::get<Move>(commands.back()); }

  Plan plan;
  std::optional<Executor> executor;
  std::vector<Command> commands;
  Move first;
};

TEST(Executor, AFaultOnABlockWhosePlannedReadFailsIsServed) {
  TwoPrefetches run;
  EXPECT_EQ(run.first.urgency, Urgency::plan);
  run.tell(Faulted{{0}, {{0}, 1}});
  run.tell(MoveFailed{run.first.id});
  const auto* again = std::get_if<Move>(&run.commands[run.commands.size() - 2]);
  ASSERT_TRUE(again != nullptr);
  EXPECT_EQ(again->urgency, Urgency::fault);
  EXPECT_EQ(again->blocks, run.first.blocks);
}

TEST(Executor, AKernelWaitsForAPlannedReadAndForTheOneAfterItsFailure) {
  TwoPrefetches run;
  run.start_kernel_1_with(0);
  run.tell(MoveFailed{run.first.id});
  const auto* again = std::get_if<Move>(&run.commands[run.commands.size() - 2]);
  ASSERT_TRUE(again != nullptr);
  EXPECT_EQ(again->urgency, Urgency::need);
  run.tell(MoveDone{again->id});
  EXPECT_TRUE(std::holds_alternative<Launch>(run.commands.back()));
}

TEST(Executor, APrefetchThatComesTooLateDoesNotUndoTheNextEviction) {
  TwoPrefetches run;
  run.start_kernel_1_with(1);  // Its prefetch waits behind the first one.
  run.tell(MoveDone{run.last_move().id});
  run.tell(KernelDone{{0}});
  const Move eviction = run.last_move();
  EXPECT_EQ(eviction.to, Tier::ssd);
  run.tell(MoveDone{eviction.id});
  const std::size_t before = run.commands.size();
  run.tell(MoveDone{run.first.id});
  EXPECT_EQ(run.commands.size(), before);
}

// One tensor that a plan brings back, its copy kept, when kernel 0 starts, and evicts when kernel 1 has ended.
struct KeptCopy {
  explicit KeptCopy(Bytes ssd = kBlockBytes * 10, std::uint32_t device = 4) {
    plan.prefetches = {{{0}, {0}, true}};
    plan.evictions = {{{0}, {1}, Tier::ssd}};
    PageTable table({kBlockBytes * device, {}, ssd});
    table.add_blocks(8, kBlockBytes);
    table.place({0}, Tier::ssd);
    executor.emplace(std::move(table), ExecutorOptions{.window_blocks = 1, .migration = {}});
    executor->adopt(plan, 2);
    tell(Allocated{{0}, {{0}, 1}});
    kernel(0, {});
    come = last_move();
    EXPECT_TRUE(come.clean);
  }
  void tell(const Event& event) { executor->on(event, commands); }
  void kernel(std::uint32_t kernel, std::vector<BlockAccess> accesses) {
    if (kernel > 0) tell(KernelDone{{0}});
    tell(KernelReady{{0}, {kernel}, accesses});
  }
  BlockState state() const { return executor->table().state({0}); }
  const Move& last_move() const { return std::get<Move>(commands.back()); }

  Plan plan;
  std::optional<Executor> executor;
  std::vector<Command> commands;
  Move come;
};

TEST(Executor, WhatNobodyHasWrittenLeavesAsClean) {
  KeptCopy run;
  run.tell(MoveDone{run.come.id});
  EXPECT_EQ(run.state(), BlockState::clean);
  run.kernel(1, {{.blocks = {{0}, 1}}});
  run.tell(KernelDone{{0}});
  EXPECT_TRUE(run.last_move().clean);
  run.tell(MoveDone{run.last_move().id});
  EXPECT_EQ(run.state(), BlockState::stored);
  EXPECT_EQ(run.executor->dropped_clean(), kBlockBytes);
  EXPECT_EQ(run.executor->moved()(Tier::device, Tier::ssd), Bytes{});
}

TEST(Executor, AKernelThatWritesMakesTheCopyWorthless) {
  KeptCopy run;
  run.tell(MoveDone{run.come.id});
  run.kernel(1, {{.blocks = {{0}, 1}, .writes = true, .sparse = true}});
  EXPECT_TRUE(std::ranges::any_of(run.commands,
                                  [](const Command& command) { return std::holds_alternative<Discard>(command); }));
  EXPECT_EQ(run.state(), BlockState::resident);
  run.tell(KernelDone{{0}});
  EXPECT_FALSE(run.last_move().clean);
}

TEST(Executor, WhatArrivesForAKernelThatWritesHasNoCopyLeft) {
  KeptCopy run;
  run.kernel(1, {{.blocks = {{0}, 1}, .writes = true}});
  run.tell(MoveDone{run.come.id});
  EXPECT_EQ(run.state(), BlockState::resident);
  EXPECT_EQ(run.executor->table().used(Tier::ssd), Bytes{});
}

// The machine maps the first blocks of a move before it tells of the end of all.
TEST(Executor, WhatIsWrittenBeforeItsArrivalIsToldHasNoCopyLeft) {
  KeptCopy run;
  run.tell(KernelReady{{1}, kNoKernel, std::vector<BlockAccess>{{.blocks = {{0}, 1}, .writes = true}}, {}, false});
  run.tell(KernelDone{{1}});
  run.tell(MoveDone{run.come.id});
  EXPECT_EQ(run.state(), BlockState::resident);
  EXPECT_EQ(run.executor->table().used(Tier::ssd), Bytes{});
}

TEST(Executor, WhatIsCleanLeavesThoughTheSsdTakesNoMore) {
  KeptCopy run(kBlockBytes * 10, 7);
  run.tell(Allocated{{1}, {{1}, 7}});
  for (std::uint32_t block = 1; block < 7; ++block) run.tell(Faulted{{1}, {{block}, 1}});
  run.tell(MoveDone{run.come.id});  // So others are victims before it.
  run.tell(Faulted{{1}, {{7}, 1}});
  for (int failure = 0; failure < 4; ++failure) {
    ASSERT_FALSE(run.last_move().clean) << failure;
    run.tell(MoveFailed{run.last_move().id});
  }
  EXPECT_TRUE(run.last_move().clean);
  EXPECT_FALSE(run.executor->failure());
}

TEST(Executor, CopiesGiveWayToWhatMustLeave) {
  KeptCopy run(kBlockBytes);
  run.tell(MoveDone{run.come.id});
  run.tell(Allocated{{1}, {{1}, 4}});
  for (std::uint32_t block = 1; block < 4; ++block) run.tell(Faulted{{1}, {{block}, 1}});
  EXPECT_EQ(run.state(), BlockState::clean);
  const BlockAccess keeps[] = {{.blocks = {{0}, 1}}};
  run.tell(KernelReady{{2}, kNoKernel, keeps});  // It stays, so another one must leave.
  run.tell(Faulted{{1}, {{4}, 1}});
  EXPECT_TRUE(run.last_move().to == Tier::ssd && !run.last_move().clean);
  EXPECT_EQ(run.state(), BlockState::resident);
  EXPECT_FALSE(run.executor->failure());
}

TEST(Executor, ACopyStaysWhereAnotherBlockCouldNotLeave) {
  KeptCopy run;
  run.tell(MoveDone{run.come.id});
  run.tell(Allocated{{1}, {{1}, 5}});
  for (std::uint32_t block = 1; block < 4; ++block) run.tell(Faulted{{1}, {{block}, 1}});
  const BlockAccess keeps[] = {{.blocks = {{0}, 1}}};
  run.tell(KernelReady{{2}, kNoKernel, keeps});
  run.tell(Faulted{{1}, {{4}, 1}});
  run.tell(MoveFailed{run.last_move().id, true});
  EXPECT_EQ(run.state(), BlockState::clean);
}

TEST(Executor, WhatIsMadeInItsBlockMakesTheCopyWorthless) {
  KeptCopy run;
  run.tell(MoveDone{run.come.id});
  run.tell(Allocated{{1}, {{0}, 1}});
  EXPECT_EQ(run.state(), BlockState::resident);
  EXPECT_EQ(run.executor->table().used(Tier::ssd), Bytes{});
}

TEST(Executor, ADeadTensorsCopyIsGivenUpAtOnce) {
  KeptCopy run;
  run.tell(MoveDone{run.come.id});
  run.tell(Freed{{0}, {{0}, 1}});
  EXPECT_EQ(run.state(), BlockState::empty);
  EXPECT_EQ(run.executor->table().used(Tier::ssd), Bytes{});
}

// Kernel 1 makes something in block 0, and kernel 2 in block 2; there is room for two blocks.
TEST(Executor, WhatDiedWhereAKernelIsAboutToMakeSomethingLeavesItsFrameThere) {
  const Plan plan;
  const std::vector<BlockRange> homes = {{{0}, 1}, {{1}, 1}, {{2}, 1}};
  const std::vector<std::vector<BlockRange>> births = {{}, {{{0}, 1}}, {{{2}, 1}}};
  PageTable table({kBlockBytes * 2, {}, kBlockBytes * 10});
  table.add_blocks(3, kBlockBytes);
  for (const std::uint32_t block : {0u, 1u}) table.place({block}, Tier::device);
  Executor executor(std::move(table), {.migration = {.keep_dead_blocks = true}});
  executor.adopt(plan, 3, {.homes = homes, .rows = {}, .births = births});
  std::vector<Command> commands;
  for (const std::uint32_t block : {0u, 1u}) executor.on(Allocated{{block}, {{block}, 1}}, commands);
  executor.on(Freed{{0}, {{0}, 1}}, commands);
  commands.clear();
  executor.on(KernelReady{{0}, {0}, {}}, commands);
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<Launch>(commands[0]));
  ASSERT_TRUE(std::holds_alternative<Move>(commands[1]));
  EXPECT_EQ(std::get<Move>(commands[1]).blocks, (BlockRange{{1}, 1}));
  EXPECT_EQ(executor.table().state({0}), BlockState::resident);
  for (std::uint32_t kernel = 0; kernel < Executor::kPatience; ++kernel) {
    EXPECT_EQ(executor.table().state({0}), BlockState::resident) << kernel;
    executor.on(KernelDone{{0}}, commands);
    executor.on(KernelReady{{0}, kNoKernel, {}}, commands);
  }
  EXPECT_EQ(executor.table().state({0}), BlockState::empty) << "the script does something else";
}

// A plan of two kernels that use blocks 0 and 1, or bring them back, and three blocks of which it knows nothing.
struct OthersBlocks {
  explicit OthersBlocks(bool brings_back) {
    if (brings_back) plan.prefetches = {{{0}, {0}}};
    PageTable table({kBlockBytes * 4, {}, kBlockBytes * 10});
    table.add_blocks(6, kBlockBytes);
    for (const std::uint32_t block : {1u, 2u, 3u, 4u}) table.place({block}, Tier::device);
    table.place({0}, Tier::ssd);
    executor.emplace(std::move(table), ExecutorOptions{.window_blocks = 1, .migration = {.piece_blocks = 1}});
    for (std::uint32_t block = 0; block < 6; ++block) tell(Allocated{{block}, {{block}, 1}});
    executor->adopt(plan, 2, {.homes = homes, .rows = rows, .births = {}});
  }
  void tell(const Event& event) { executor->on(event, commands); }
  void kernel(std::uint32_t kernel, std::vector<BlockAccess> accesses) {
    tell(KernelReady{{0}, {kernel}, accesses});
    tell(KernelDone{{0}});
  }
  BlockState state(std::uint32_t block) const { return executor->table().state({block}); }
  // The first that has left the device.
  std::optional<BlockRange> left() const {
    for (const Command& command : commands)
      if (const auto* move = std::get_if<Move>(&command); move && move->from == Tier::device) return move->blocks;
    return std::nullopt;
  }

  Plan plan;
  std::vector<BlockRange> homes = {{{0}, 1}, {{1}, 1}};
  std::vector<Foresight::Row> rows = {{{{0}, 1}, {{0}}}, {{{1}, 1}, {{1}}}};
  std::optional<Executor> executor;
  std::vector<Command> commands;
};

TEST(Executor, WhatNoKernelHasUsedForIterationsLeavesBeforeWhatThePlanNeeds) {
  OthersBlocks run(false);
  for (std::uint32_t kernel = 0; kernel < 6; ++kernel)
    run.kernel(kernel % 2, {{.blocks = {{2}, 1}}, {.blocks = {{4}, 1}}});
  run.tell(Faulted{{1}, {{5}, 1}});
  EXPECT_EQ(run.left(), (BlockRange{{3}, 1}));
}

TEST(Executor, WhatIsUsedByKernelsThatNoPlanKnowsIsNotIdle) {
  OthersBlocks run(false);
  for (std::uint32_t kernel = 0; kernel < 4; ++kernel) run.kernel(kernel % 2, {});
  run.kernel(kNoKernel.value, {{.blocks = {{2}, 3}}});
  run.kernel(0, {});
  run.tell(Faulted{{1}, {{5}, 1}});
  EXPECT_EQ(run.left(), (BlockRange{{1}, 1}));
}

TEST(Executor, WhatIsIdleMakesRoomForWhatThePlanBringsBack) {
  OthersBlocks run(true);
  for (std::uint32_t kernel = 0; kernel < 4; ++kernel) run.kernel(kernel % 2, {});
  EXPECT_EQ(run.left(), std::nullopt);
  run.kernel(0, {});
  ASSERT_EQ(run.left(), (BlockRange{{2}, 1}));
  EXPECT_EQ(std::get<Move>(run.commands.back()).urgency, Urgency::plan);
  run.tell(MoveDone{std::get<Move>(run.commands.back()).id});
  EXPECT_EQ(run.state(0), BlockState::arriving);
}

// What the script has locked cannot leave.
TEST(Executor, WhatIsNeededLastAndCannotLeaveIsNotTriedForEver) {
  OthersBlocks run(false);
  run.kernel(0, {});
  run.tell(Faulted{{1}, {{5}, 1}});
  ASSERT_EQ(run.left(), (BlockRange{{1}, 1}));
  run.tell(MoveFailed{std::get<Move>(run.commands.back()).id, true});
  EXPECT_EQ(run.state(1), BlockState::resident);
  EXPECT_EQ(std::get<Move>(run.commands.back()).blocks, (BlockRange{{2}, 1}));
}

// One tensor of four blocks, and then four of one block each.
TEST(Executor, NoPlannedMoveStartsWithSoManyBlocksInFlight) {
  Plan plan;
  for (std::uint32_t tensor = 0; tensor < 5; ++tensor) plan.prefetches.push_back({{tensor}, {0}});
  PageTable table({kBlockBytes * 20, {}, kBlockBytes * 20});
  table.add_blocks(8, kBlockBytes);
  for (std::uint32_t block = 0; block < 8; ++block) table.place({block}, Tier::ssd);
  Executor executor(std::move(table), {.migration = {.piece_blocks = 4, .planned_in_flight = 2}});
  executor.adopt(plan, 1);
  std::vector<Command> commands;
  executor.on(Allocated{{0}, {{0}, 4}}, commands);
  for (std::uint32_t tensor = 1; tensor < 5; ++tensor) executor.on(Allocated{{tensor}, {{tensor + 3}, 1}}, commands);
  executor.on(KernelReady{{0}, {0}, {}}, commands);
  ASSERT_EQ(commands.size(), 2u);  // One of them launches the kernel.
  executor.on(MoveDone{std::get<Move>(commands.back()).id}, commands);
  EXPECT_EQ(commands.size(), 4u);
}

TEST(ExecutorProperty, NoOrderOfEventsLosesBytesOrExceedsTheBudgetWhenKernelsFault) { check_random_programs(true); }

TEST(ExecutorProperty, KernelsThatCannotFaultStartWithTheirWholeWorkingSet) { check_random_programs(false); }

}  // namespace
}  // namespace spillway
