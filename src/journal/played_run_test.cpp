#include "journal/played_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "executor/observed_executor.h"
#include "journal/iteration_ends.h"
#include "journal/journal_file.h"
#include "journal/journal_observer.h"
#include "journal/kernel_names.h"
#include "journal/random_run.h"
#include "journal/replay.h"

namespace spillway {
namespace {

constexpr Nanos kUntilFlushed{20'000'000'000};

PageTable small_table() {
  PageTable table({kBlockBytes * 2, {}, kBlockBytes * 8});
  table.add_blocks(8, kBlockBytes);
  return table;
}

// A run of one thread on a device of two blocks, with its journal. Tensor N is block N, and its label is N + 1.
class SmallRun {
 public:
  SmallRun() : file_(start(path_)), names_(*file_), journal_(*file_, beginnings(), [this] { return ago_; }) {}
  ~SmallRun() { std::filesystem::remove(path_); }

  void tell(std::uint64_t at, const Event& event, std::uint64_t ago = 0) {
    ago_ = Nanos{ago};
    executor_.on({Nanos{at}, event}, commands_);
    for (const Command& command : commands_)
      if (const auto* move = std::get_if<Move>(&command)) moves_.push_back(*move);
  }
  void make(std::uint64_t at, std::uint32_t tensor, std::uint64_t ago = 0) {
    tell(at, Allocated{{tensor}, {{tensor}, 1}, {tensor + 1}}, ago);
  }
  void ready(std::uint64_t at, std::uint32_t tensor, std::uint64_t execution, std::uint64_t ago = 0,
             KernelId kernel = kNoKernel, PlanId plan = {}) {
    const std::vector<BlockAccess> accesses{{{{tensor}, 1}, {tensor + 1}, false, false}};
    tell(at, KernelReady{{{0}, ++serial_}, kernel, accesses, {execution}, false, plan}, ago);
  }
  void done(std::uint64_t at, std::uint64_t ago = 0) { tell(at, KernelDone{{{0}, serial_}}, ago); }
  void fault(std::uint64_t at, std::uint32_t block, StreamId stream = {0}) {
    tell(at, Faulted{stream, {{block}, 1}, false});
  }
  // All moves that are under way, and those that they let begin.
  void moves_end(std::uint64_t at) {
    while (!moves_.empty()) {
      const Move move = moves_.front();
      moves_.erase(moves_.begin());
      tell(at, MoveDone{move.id});
    }
  }

  RunTimeline played(const PlayedRunOptions& options = {}) {
    file_->flush(kUntilFlushed);
    auto timeline = played_run(path_, options);
    EXPECT_TRUE(timeline) << timeline.error().message;
    return timeline ? *std::move(timeline) : RunTimeline{};
  }

  void iteration_ends(std::uint64_t at, IterationEnded::Place place = IterationEnded::Place::next) {
    write(*file_, IterationEnded{place, Nanos{at}});
  }
  KernelNames& names() { return names_; }
  const std::string& path() const { return path_; }

 private:
  static std::unique_ptr<JournalFile> start(const std::string& path) {
    auto file = JournalFile::start({.path = path});
    CHECK(file.has_value());
    return std::move(*file);
  }
  JournalObserver::Beginnings beginnings() const { return {.table = table_, .options = options_, .online_device = {}}; }

  const std::string path_ = testing::TempDir() + "spillway-played-" + std::to_string(::getpid());
  const PageTable table_ = small_table();
  const ExecutorOptions options_{.migration = {.victims_to_host = false, .splits_blocks = false}};
  Nanos ago_{};
  std::unique_ptr<JournalFile> file_;
  KernelNames names_;
  JournalObserver journal_;
  ObservedExecutor executor_{small_table(), options_, nullptr, {&journal_}};
  std::vector<Command> commands_;
  std::vector<Move> moves_;
  std::uint32_t serial_ = 0;
};

// Three tensors in turn, on a device that holds two; then the first is touched again.
void touch_in_turns(SmallRun& run) {
  for (const std::uint32_t tensor : {0u, 1u, 2u}) {
    const std::uint64_t at = 1'000 * (tensor + 1);
    run.make(at, tensor);
    run.ready(at + 100, tensor, 7 + tensor);
    run.fault(at + 200, tensor);
    run.moves_end(at + 500);
    run.done(at + 600);
  }
  run.ready(5'000, 0, 7);
  run.fault(5'100, 0);
  run.moves_end(5'400);
  run.done(5'900);
}

TEST(PlayedRun, AFaultIsAWaitOfTheKernelThatRuns) {
  SmallRun run;
  run.names().name({7}, "aten::mm");
  touch_in_turns(run);
  const RunTimeline timeline = run.played();
  ASSERT_EQ(timeline.kernels.size(), 4u);
  const PlayedKernel& last = timeline.kernels.back();
  EXPECT_EQ(last.name, "aten::mm");
  EXPECT_EQ(timeline.kernels[1].name, "operator 1") << "nobody has said its name";
  EXPECT_EQ(last.ready, Nanos{4'000}) << "from the first event on";
  EXPECT_EQ(last.wait(), Nanos{300}) << "as long as its fault";
  EXPECT_EQ(last.end, Nanos{4'900});
  EXPECT_EQ(last.faults, 1u);
  EXPECT_NE(last.stall, Stall::none);
  EXPECT_EQ(last.waited_for, TensorId{0});
  EXPECT_EQ(timeline.kernels.front().wait(), Nanos{}) << "its memory had no bytes, and there was room";
  EXPECT_EQ(timeline.peak.device, kBlockBytes * 2);
  EXPECT_EQ(timeline.capacity.device, kBlockBytes * 2);
  EXPECT_GE(timeline.peak.ssd, kBlockBytes);
}

TEST(PlayedRun, WhatMovedIsOfTheTensorsThatLivedThere) {
  SmallRun run;
  touch_in_turns(run);
  const RunTimeline timeline = run.played();
  ASSERT_EQ(timeline.tensors.size(), 3u);
  const auto up = std::ranges::find(timeline.transfers, Tier::device, &PlayedTransfer::to);
  ASSERT_NE(up, timeline.transfers.end());
  EXPECT_EQ(up->tensor, TensorId{0});
  EXPECT_EQ(up->bytes, kBlockBytes);
  EXPECT_EQ(up->urgency, Urgency::fault);
  EXPECT_EQ(timeline.lives.size(), 3u);
}

TEST(PlayedRun, WhatIsToldLateHappenedBefore) {
  SmallRun run;
  run.make(1'000, 0);
  run.ready(9'000, 0, 7, 7'000);
  run.done(9'000, 5'000);
  const RunTimeline timeline = run.played();
  ASSERT_EQ(timeline.kernels.size(), 1u);
  EXPECT_EQ(timeline.kernels[0].ready, Nanos{1'000});
  EXPECT_EQ(timeline.kernels[0].end, Nanos{3'000});
}

TEST(PlayedRun, AThreadWithoutAKernelFaultsForTheOnlyOneThatRunsOrForItself) {
  SmallRun run;
  for (const std::uint32_t tensor : {0u, 1u, 2u}) {
    const std::uint64_t at = 1'000 * (tensor + 1);
    run.make(at, tensor);
    run.fault(at + 100, tensor, {5});
    run.moves_end(at + 200);
  }
  run.ready(4'000, 1, 7);
  run.fault(4'100, 0, {5});
  run.moves_end(4'300);
  run.done(5'000);
  const RunTimeline timeline = run.played();
  ASSERT_EQ(timeline.kernels.size(), 2u);
  EXPECT_EQ(timeline.kernels[0].name, "outside of operators");
  EXPECT_EQ(timeline.kernels[0].kernel, kNoKernel);
  EXPECT_GT(timeline.kernels[0].wait(), Nanos{});
  EXPECT_EQ(timeline.kernels[1].faults, 1u);
  EXPECT_EQ(timeline.kernels[1].wait(), Nanos{200});
}

TEST(PlayedRun, ShowsTheIterationsThatAreAskedFor) {
  SmallRun run;
  run.make(500, 0);
  for (const std::uint64_t begin : {1'000, 2'000, 3'000}) {
    run.ready(begin, 0, 7);
    run.done(begin + 500);
    run.iteration_ends(begin + 600);
  }
  run.tell(9'000, Freed{{0}, {{0}, 1}});
  const RunTimeline all = run.played();
  EXPECT_EQ(all.kernels.size(), 3u);
  EXPECT_EQ(all.iterations, 3u);
  EXPECT_EQ(all.heading, "a run of 3 iterations");
  ASSERT_EQ(all.marks.size(), 4u);
  EXPECT_EQ(all.marks[1].text, "iteration 2");
  EXPECT_EQ(all.marks[1].at, Nanos{1'100}) << "when the first one ended, and not when something was told after it";
  EXPECT_EQ(all.marks[3].text, "the rest");
  const RunTimeline second = run.played({.iterations = IterationRange{2, 2}});
  EXPECT_EQ(second.kernels.size(), 1u);
  EXPECT_EQ(second.heading, "iteration 2 of 3 of a run");
  EXPECT_EQ(second.iteration, Nanos{1'000}) << "from the end of the one before to its own";
  EXPECT_EQ(second.tensors[0].bytes, kBlockBytes) << "what lives is there from the start";
  const RunTimeline rest = run.played({.iterations = IterationRange{4, 4}});
  EXPECT_TRUE(rest.kernels.empty());
  EXPECT_EQ(rest.heading, "the rest of a run, after its last iteration");
  const RunTimeline last = run.played({.most_kernels = 2});
  EXPECT_EQ(last.kernels.size(), 2u);
  EXPECT_EQ(last.heading, "iterations 2 to 3 of 3 of a run");
  EXPECT_FALSE(last.notes.empty()) << "it says that some are left out";
  EXPECT_FALSE(played_run(run.path(), {.iterations = IterationRange{7, 8}}));
}

TEST(PlayedRun, ALongRestIsShownWithoutTheLastIteration) {
  SmallRun run;
  run.make(500, 0);
  for (const std::uint64_t begin : {1'000, 2'000, 3'000, 4'000, 5'000}) {
    run.ready(begin, 0, 7);
    run.done(begin + 500);
    if (begin < 3'000) run.iteration_ends(begin + 600);
  }
  const RunTimeline rest = run.played({.most_kernels = 2});
  EXPECT_EQ(rest.heading, "the rest of a run, after its last iteration");
  EXPECT_EQ(rest.kernels.size(), 3u) << "that much at least";
  EXPECT_EQ(rest.iterations, 0u);
  ASSERT_EQ(rest.notes.size(), 2u);
  EXPECT_TRUE(rest.notes[1].starts_with("Only what is after the last iteration is shown")) << rest.notes[1];
  EXPECT_EQ(run.played({.most_kernels = 3}).heading, "iteration 2 of 2 of a run");
}

// What seemed to be iterations, until the first optimizer step, were none; several optimizers' steps make one.
TEST(PlayedRun, IterationsAreThoseOfTheReport) {
  using enum IterationEnded::Place;
  SmallRun run;
  run.make(500, 0);
  const auto kernel_until = [&](std::uint64_t end, IterationEnded::Place place) {
    run.ready(end - 500, 0, 7);
    run.done(end - 100);
    run.iteration_ends(end, place);
  };
  kernel_until(1'000, next);
  kernel_until(2'000, next);
  kernel_until(3'000, first);
  kernel_until(4'000, next);
  kernel_until(5'000, last);
  run.tell(9'000, Freed{{0}, {{0}, 1}});
  const RunTimeline all = run.played();
  EXPECT_EQ(all.heading, "a run of 2 iterations");
  ASSERT_EQ(all.marks.size(), 3u);
  EXPECT_EQ(all.marks[1].at, Nanos{2'500});
  EXPECT_EQ(all.marks[2].at, Nanos{4'500});
  EXPECT_EQ(run.played({.iterations = IterationRange{1, 1}}).kernels.size(), 3u);
  EXPECT_EQ(run.played({.iterations = IterationRange{2, 2}}).kernels.size(), 2u);
  EXPECT_EQ(run.played({.most_kernels = 2}).heading, "iteration 2 of 2 of a run");
  EXPECT_EQ(run.played({.most_kernels = 1}).heading, "iteration 2 of 2 of a run") << "one at least";
}

TEST(PlayedRun, IterationsThatAreToldOfTogetherAreToldApart) {
  SmallRun run;
  run.make(1'000, 0);
  for (const std::uint64_t begin : {2'000, 3'000, 5'000}) {
    run.ready(9'000, 0, 7, 9'000 - begin);
    run.done(9'000, 9'000 - begin - 400);
    run.iteration_ends(begin + 500);
    if (begin == 3'000) run.iteration_ends(4'500);  // Nothing of it concerns memory.
  }
  run.tell(9'500, Freed{{0}, {{0}, 1}});
  const RunTimeline all = run.played();
  ASSERT_EQ(all.marks.size(), 5u);
  EXPECT_EQ(all.marks[1].at, Nanos{1'500});
  EXPECT_EQ(all.marks[3].at, Nanos{3'500});
  const RunTimeline second = run.played({.iterations = IterationRange{2, 2}});
  ASSERT_EQ(second.kernels.size(), 1u);
  EXPECT_EQ(second.kernels[0].ready, Nanos{500});
  EXPECT_EQ(second.kernels[0].end, Nanos{900});
  EXPECT_EQ(second.iteration, Nanos{1'000});
  const RunTimeline third = run.played({.iterations = IterationRange{3, 3}});
  EXPECT_TRUE(third.kernels.empty());
  EXPECT_EQ(third.iteration, Nanos{1'000});
  EXPECT_EQ(third.heading, "iteration 3 of 4 of a run");
}

// Machines tell what has moved before what the script did until then.
TEST(PlayedRun, WhatMovedIsToldBeforeWhatTheScriptDidEarlier) {
  SmallRun run;
  for (std::uint32_t tensor = 0; tensor < 5; ++tensor) {
    run.make(1'000 + 100 * tensor, tensor);
    run.fault(1'050 + 100 * tensor, tensor, {5 + tensor});
  }
  run.ready(3'000, 0, 7);
  run.iteration_ends(5'000);
  run.moves_end(9'000);
  run.done(9'000, 5'500);
  run.make(9'000, 5, 5'200);
  run.fault(9'000, 4, {8});
  run.ready(9'000, 0, 7, 5'000);
  run.done(9'000, 4'600);
  run.ready(9'000, 0, 7, 3'000);
  run.done(9'000, 2'500);
  run.iteration_ends(9'500);
  run.tell(9'900, Freed{{5}, {{5}, 1}});

  const auto of_operators = [](const RunTimeline& timeline) {
    std::vector<std::pair<Nanos, Nanos>> found;
    for (const PlayedKernel& one : timeline.kernels)
      if (one.name == "operator 1") found.emplace_back(one.ready, one.end);
    return found;
  };
  using Spans = std::vector<std::pair<Nanos, Nanos>>;
  const RunTimeline first = run.played({.iterations = IterationRange{1, 1}});
  EXPECT_EQ(of_operators(first), (Spans{{Nanos{2'000}, Nanos{2'500}}, {Nanos{3'000}, Nanos{3'400}}}));
  EXPECT_EQ(first.iteration, Nanos{4'000});
  EXPECT_EQ(first.lives.size(), 6u);
  ASSERT_EQ(first.transfers.size(), 1u) << "nobody had asked for the others";
  EXPECT_TRUE(first.transfers[0].goes_on);
  EXPECT_EQ(first.levels.back().bytes.ssd, kBlockBytes * 2);

  const RunTimeline second = run.played({.iterations = IterationRange{2, 2}});
  EXPECT_EQ(of_operators(second), (Spans{{Nanos{1'000}, Nanos{1'500}}}));
  EXPECT_TRUE(second.lives.empty()) << "what was made before is there";
  ASSERT_EQ(second.transfers.size(), 3u);
  EXPECT_EQ(second.transfers[0].end, Nanos{4'000}) << "told before anything of this iteration";
  ASSERT_EQ(second.levels.size(), 2u);
  EXPECT_EQ(second.levels[0].bytes, first.levels.back().bytes);
  EXPECT_EQ(second.levels[1].at, Nanos{4'000});
}

// A process that was killed may have told the journal's thread more than its loop knew.
TEST(PlayedRun, AnIterationAfterTheJournalsLastEventIsRefused) {
  SmallRun run;
  run.make(500, 0);
  run.iteration_ends(1'000);
  run.iteration_ends(2'000);
  ASSERT_EQ(run.played().marks.size(), 1u);
  const auto none = played_run(run.path(), {.iterations = IterationRange{2, 2}});
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().message.ends_with("it ends before its iteration 2")) << none.error().message;
}

// The trace of an iteration of two kernels: the first reads w, the second reads x.
TEST(PlayedRun, TensorsHaveTheNamesOfTheTraceWhereAPlanIsFollowed) {
  Trace trace{.name = "script", .source = "test"};
  trace.tensors = {{.name = "w", .bytes = 1_MiB, .kind = TensorKind::weight, .persistent = true},
                   {.name = "x", .bytes = 1_MiB, .persistent = true}};
  trace.kernels = {{.name = "aten::first", .phase = Phase::forward, .duration = Nanos{1}, .reads = {{{0}, {}, 1_MiB}}},
                   {.name = "aten::second", .duration = Nanos{1}, .reads = {{{1}, {}, 1_MiB}}}};
  const auto followed = [&](std::uint32_t kernels, std::uint64_t second_execution) {
    SmallRun run;
    run.make(100, 3);
    run.make(200, 4);
    run.ready(300, 3, 70);
    run.done(400);
    auto plan = std::make_shared<FollowedPlan>();
    plan->id = {1};
    plan->kernels = kernels;
    plan->commands.policy = "g10";
    plan->births.resize(kernels);
    run.tell(500, Adopted{plan});
    run.ready(600, 3, 70, 0, {0}, {1});
    run.done(700);
    run.ready(800, 4, second_execution, 0, {1}, {1});
    run.done(900);
    return run.played({.names = &trace});
  };
  const RunTimeline known = followed(2, 71);
  EXPECT_EQ(known.trace_name, "script");
  EXPECT_EQ(known.tensors[0].name, "w");
  EXPECT_EQ(known.tensors[0].bytes, 1_MiB);
  EXPECT_EQ(known.tensors[1].name, "x");
  ASSERT_EQ(known.kernels.size(), 3u);
  EXPECT_EQ(known.kernels[0].name, "aten::first") << "also before the plan was followed";
  EXPECT_EQ(known.kernels[0].phase, Phase::forward);
  EXPECT_TRUE(known.notes.empty());
  EXPECT_EQ(known.marks.back().text, "plan of g10");
  EXPECT_EQ(followed(3, 71).tensors[0].name, "tensor 0") << "the plan is for another iteration";
  EXPECT_EQ(followed(2, 70).tensors[0].name, "tensor 0") << "one operator cannot have two names";
}

// Whatever happens, times are within what is shown, and ids within their lists.
TEST(PlayedRun, AnyRunIsATimeline) {
  const std::string path = testing::TempDir() + "spillway-played-any-" + std::to_string(::getpid());
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    {
      auto file = JournalFile::start({.path = path});
      ASSERT_TRUE(file);
      JournalledExecutor executor(**file);
      for (const std::uint64_t at : {1'200'000, 1'500'000, 1'900'000}) write(**file, IterationEnded{.at = {at}});
      executor.play(RandomRun(seed), 600);
      (*file)->flush(kUntilFlushed);
    }
    for (const auto& range : {IterationRange{}, IterationRange{2, 3}}) {
      const auto timeline = played_run(path, {.iterations = range});
      if (!timeline && range.first > 1) continue;  // It gave up before.
      ASSERT_TRUE(timeline) << timeline.error().message << " seed " << seed;
      const Nanos end = timeline->iteration;
      for (const PlayedKernel& kernel : timeline->kernels) {
        ASSERT_TRUE(kernel.ready <= kernel.start && kernel.start <= kernel.end && kernel.end <= end) << seed;
        for (const TensorId tensor : kernel.reads) ASSERT_LT(tensor.value, timeline->tensors.size());
        ASSERT_EQ(kernel.stall != Stall::none, kernel.start > kernel.ready);
      }
      for (const PlayedTransfer& one : timeline->transfers) ASSERT_TRUE(one.begin <= one.end && one.end <= end) << seed;
      ASSERT_TRUE(std::ranges::is_sorted(timeline->kernels, {}, &PlayedKernel::ready));
      ASSERT_TRUE(std::ranges::is_sorted(timeline->lives, {}, &PlayedLife::at));
      for (const TierLevel& level : timeline->levels)
        for (const Tier tier : kTiers) ASSERT_LE(level.bytes[tier], *timeline->capacity[tier]);
    }
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace spillway
