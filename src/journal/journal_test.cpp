#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <latch>
#include <set>
#include <string>

#include "base/check.h"
#include "base/files.h"
#include "journal/iteration_ends.h"
#include "journal/journal_file.h"
#include "journal/ledger.h"
#include "journal/random_run.h"
#include "journal/replay.h"
#include "journal/rewritten.h"
#include "policies/deepum.h"

namespace spillway {
namespace {

constexpr Nanos kPatience{20'000'000'000};

// Each test's own file, gone with it.
class JournalTest : public testing::Test {
 protected:
  ~JournalTest() override { std::filesystem::remove(path_); }
  std::unique_ptr<JournalFile> journal(JournalOptions options = {}) {
    options.path = path_;
    auto file = JournalFile::start(std::move(options));
    CHECK(file.has_value());
    return std::move(*file);
  }
  std::string bytes() const {
    const auto content = read_file(path_, 64_MiB);
    CHECK(content.has_value());
    return *content;
  }
  // The journal of a random run, as a file's bytes.
  std::string record(std::uint64_t seed, std::uint32_t events, bool online, JournalOptions options = {}) {
    const auto file = journal(std::move(options));
    JournalledExecutor executor(*file,
                                {.migration = {.keeps_copies = seed % 3 == 0, .keep_dead_blocks = seed % 2 == 0}},
                                {online ? make_deepum : nullptr, kBlockBytes * 16});
    for (const std::uint64_t at : {1, 2, 3}) write(*file, IterationEnded{.at = {at}});
    executor.play(RandomRun(seed), events);
    file->flush(kPatience);
    return bytes();
  }
  const std::string path_ = testing::TempDir() + "spillway-journal-" + std::to_string(::getpid());
};

Replay replayed(const std::string& bytes, const ReplayOptions& options = {}) {
  auto journal = JournalReader::open_bytes(bytes, "test");
  CHECK(journal.has_value());
  auto done = replay(*journal, options);
  if (!done) ADD_FAILURE() << done.error().message;
  return done ? *done : Replay{};
}

std::string why_none(const std::string& bytes) {
  auto journal = JournalReader::open_bytes(bytes, "test");
  if (!journal) return journal.error().message;
  const auto done = replay(*journal);
  return done ? done->why : done.error().message;
}

// One that is refused at its first line tests nothing. Another version needs other seeds: a random run's file and,
// beside it, the same decompressed.
TEST_F(JournalTest, TheFuzzersSeedIsAJournal) {
  const auto seed = read_file("fuzz/corpus/journal/random_run.journal", 1_MiB);
  ASSERT_TRUE(seed) << seed.error().message;
  const Replay replay = replayed(*seed);
  EXPECT_TRUE(replay.equal());
  EXPECT_GT(replay.events, 50u);
}

TEST_F(JournalTest, RandomRunsReplayWithoutADifference) {
  EXPECT_TRUE(rc::check([this](std::uint64_t seed, bool online) {
    const auto events = *rc::gen::inRange<std::uint32_t>(1, 600);
    const Replay replay = replayed(record(seed, events, online));
    RC_ASSERT(replay.equal());
    RC_ASSERT(!replay.difference);
    RC_ASSERT(replay.events <= events && replay.events > 0);
    RC_ASSERT(replay.end == Replay::End::failed || replay.events == events);
    RC_ASSERT(replay.iterations == 3 && replay.last.back().iterations == 3);
    RC_ASSERT(!replay.cut_off);
  }));
}

TEST_F(JournalTest, AReplayHasPlansMovesAndFailures) {
  const Replay replay = replayed(record(1, 5'000, true));
  EXPECT_GT(replay.plans, 10u);
  EXPECT_GT(replay.commands, 100u);
  EXPECT_GT(replay.moved(Tier::device, Tier::ssd), Bytes{});
  EXPECT_EQ(replay.online, "deepum");
}

TEST_F(JournalTest, ACommandThatDiffersStopsTheReplayThere) {
  const std::string original = record(7, 400, true);
  const std::uint64_t all = replayed(original).commands;
  EXPECT_TRUE(rc::check([&] {
    const auto chosen = *rc::gen::inRange<std::uint64_t>(0, all);
    const auto how = *rc::gen::inRange(0, 3);
    std::uint64_t seen = 0, event = 0, changed_at = 0;
    std::size_t place = 0;
    const std::string changed = rewritten(original, [&](Record& record) {
      event += std::holds_alternative<Told>(record);
      auto* asked = std::get_if<Asked>(&record);
      if (asked == nullptr) return;
      const std::uint64_t size = asked->commands.size();
      if (chosen >= seen && chosen < seen + size) {
        changed_at = event;
        place = chosen - seen;
        const auto at = asked->commands.begin() + static_cast<std::ptrdiff_t>(place);
        if (how == 0) *at = Cancel{{12'345}};
        if (how == 1) asked->commands.insert(at, Cancel{{12'345}});
        if (how == 2) asked->commands.resize(place);
      }
      seen += size;
    });
    const Replay replay = replayed(changed);
    RC_ASSERT(replay.end == Replay::End::difference && replay.difference.has_value());
    RC_ASSERT(replay.difference->moment.event == changed_at);
    RC_ASSERT(replay.difference->first == place);
    RC_ASSERT(replay.commands == chosen);
    RC_ASSERT(replay.difference->before.size() <= 5u);
    if (how == 2) RC_ASSERT(replay.difference->recorded.size() == place && replay.difference->replayed.size() > place);
    if (how < 2) RC_ASSERT(replay.difference->recorded[place] == "cancel move 12345");
  }));
}

TEST_F(JournalTest, AnotherDecisionCodeIsFound) {
  const std::string bytes = record(2, 2'000, true);
  const Replay replay = replayed(bytes, {.online = [](const std::string& name, Bytes) {
                                   EXPECT_EQ(name, "deepum");
                                   return make_deepum(kBlockBytes * 2, {});  // looks less far ahead
                                 }});
  ASSERT_TRUE(replay.difference);
  EXPECT_NE(replay.difference->recorded, replay.difference->replayed);
}

TEST_F(JournalTest, OneThatBreaksOffIsReplayedUpToThere) {
  {
    const auto file = journal();
    JournalledExecutor executor(*file);
    RandomRun run(3);
    for (std::uint32_t part = 0; part < 10; ++part) {  // Of what is compressed together all is needed.
      executor.play(run, 30);
      file->flush(kPatience);
    }
  }
  const std::string whole = bytes();
  const std::uint64_t all = replayed(whole).events;
  std::uint64_t last = 0;
  std::set<std::uint64_t> ends;
  for (std::size_t size = 0; size < whole.size(); size += 5) {
    SCOPED_TRACE(size);
    auto journal = JournalReader::open_bytes(std::string_view(whole).substr(0, size), "test");
    if (!journal) {
      EXPECT_LT(size, 20u);
      continue;
    }
    const auto done = replay(*journal);
    if (!done) continue;  // The beginning is not there.
    EXPECT_TRUE(done->equal()) << done->why;
    EXPECT_GE(done->events, last);
    last = done->events;
    ends.insert(last);
  }
  EXPECT_GE(ends.size(), 9u);
  EXPECT_EQ(all, 300u);
}

TEST_F(JournalTest, AKilledProcessLeavesWhatIsOlderThanAMoment) {
  std::atomic<bool> written{false};
  const auto file = journal({.write = [&](int fd, const void* data, std::size_t size) {
    const ssize_t done = ::write(fd, data, size);
    written = true;
    written.notify_all();
    return done;
  }});
  written = false;
  JournalledExecutor executor(*file);
  executor.play(RandomRun(4), 100);
  written.wait(false);  // Without a flush.
  file->flush(kPatience);
  EXPECT_EQ(replayed(bytes()).events, 100u);  // Nothing has been closed.
}

TEST_F(JournalTest, AllThatWasWrittenIsReadWhereverItBreaksOff) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {  // Pieces of it wait inside the decompressor.
    const std::uint64_t open = replayed(record(seed, 30'000, false)).events;
    EXPECT_EQ(open, replayed(bytes()).events) << seed;  // Now it is closed.
  }
}

TEST_F(JournalTest, ABugOfOursLeavesAllThatLedThere) {
  EXPECT_DEATH(
      {
        const auto file = journal();
        JournalledExecutor executor(*file);
        executor.play(RandomRun(4), 100);
        std::vector<Command> commands;
        executor.on({Nanos{1} * 1'000'000'000, Freed{{9'999}, {{0}, 1}}}, commands);  // The executor CHECKs that.
      },
      "CHECK failed");
  const std::string why = why_none(bytes());
  EXPECT_TRUE(why.contains("event 101, 'tensor 9999 in block 0 dies', cannot be")) << why;
}

TEST_F(JournalTest, ADiskThatIsTooSlowEndsTheJournalAndNotTheRun) {
  std::latch disk_answers(1);
  std::string told;
  std::uint64_t calls = 0;
  {
    const auto file = journal({.on_stop = [&](std::string_view why) { told += why; },
                               .most_pending = 4_KiB,
                               .write =
                                   [&](int fd, const void* data, std::size_t size) {
                                     if (++calls > 1) disk_answers.wait();
                                     return ::write(fd, data, size);
                                   }});
    JournalledExecutor executor(*file);
    executor.play(RandomRun(5), 3'000);
    EXPECT_TRUE(told.contains("the journal ends early: the disk is slower than the run")) << told;
    EXPECT_EQ(told.find("early", told.find("early") + 1), std::string::npos) << "told twice: " << told;
    disk_answers.count_down();
  }
  const Replay replay = replayed(bytes());
  EXPECT_EQ(replay.end, Replay::End::stopped) << replay.why;
  EXPECT_TRUE(replay.equal());
  EXPECT_GT(replay.events, 10u);
  EXPECT_LT(replay.events, 3'000u);
}

TEST_F(JournalTest, WhatNoReaderWouldTakeEndsTheJournalWithItsReason) {
  std::string told;
  {
    const auto file = journal({.on_stop = [&](std::string_view why) { told += why; }});
    JournalledExecutor executor(*file);
    executor.play(RandomRun(6), 10);
    file->append(std::string(kMostRecordBytes.value + 1, 'x'));
  }
  EXPECT_TRUE(told.contains("a record at most 8 MiB")) << told;
  const Replay replay = replayed(bytes());
  EXPECT_EQ(replay.end, Replay::End::stopped);
  EXPECT_EQ(replay.events, 10u);
}

TEST_F(JournalTest, AFullDiskEndsTheJournalAndNotTheRun) {
  std::string told;
  std::atomic<bool> full{false};
  const auto file = journal({.on_stop = [&](std::string_view why) { told += why; },
                             .write = [&](int fd, const void* data, std::size_t size) -> ssize_t {
                               errno = ENOSPC;
                               return full ? -1 : ::write(fd, data, size);
                             }});
  JournalledExecutor executor(*file);
  RandomRun program(6);
  executor.play(program, 100);
  file->flush(kPatience);
  full = true;
  executor.play(program, 100);
  file->flush(kPatience);
  EXPECT_TRUE(told.contains("No space left on device")) << told;
  executor.play(program, 100);
  const Replay replay = replayed(bytes());
  EXPECT_TRUE(replay.equal());
  EXPECT_EQ(replay.events, 100u);
}

TEST_F(JournalTest, WhatNoRunCanHaveToldIsDamage) {
  const auto why_with = [&](const std::function<void(Told&)>& spoil) {
    std::uint32_t event = 0;
    return why_none(rewritten(record(3, 300, true), [&](Record& record) {
      if (auto* told = std::get_if<Told>(&record); told && ++event == 200) spoil(*told);
    }));
  };
  const std::string backwards = why_with([](Told& told) { told.since_last = Nanos{UINT64_MAX - 5}; });
  EXPECT_TRUE(backwards.contains("time goes backwards")) << backwards;
  const std::uint32_t blocks = RandomRun::table().block_count();
  const std::string nowhere = why_with([&](Told& told) { told.event = Faulted{{0}, {{blocks}, 0}}; });
  EXPECT_TRUE(nowhere.contains("it names no block")) << nowhere;
}

TEST_F(JournalTest, ADiskThatIsFullBeforeItBeginsKeepsNoneOfIt) {
  const auto file = JournalFile::start({.path = path_, .write = [](int, const void*, std::size_t) -> ssize_t {
                                          errno = ENOSPC;
                                          return -1;
                                        }});
  ASSERT_FALSE(file);
  EXPECT_TRUE(file.error().message.contains("No space left on device")) << file.error().message;
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(JournalTest, AScriptThatHasEndedSaysSo) {
  {
    const auto file = journal();
    JournalledExecutor executor(*file);
    executor.play(RandomRun(8), 10);
    file->script_ended(kPatience);
    std::string flipped = bytes();
    flipped.back() ^= 1;  // of the checksum, which is there though the process may end without closing the file
    EXPECT_TRUE(why_none(flipped).contains("checksum"));
  }
  EXPECT_EQ(replayed(bytes()).end, Replay::End::script_ended);
}

TEST_F(JournalTest, WhatNoMachineTellsIsRefused) {
  const std::string good = record(9, 50, false);
  std::uint64_t told_seen = 0;
  const auto with = [&](const Event& event) {
    told_seen = 0;
    return why_none(rewritten(good, [&](Record& record) {
      if (auto* told = std::get_if<Told>(&record); told != nullptr && ++told_seen == 20) told->event = event;
    }));
  };
  EXPECT_TRUE(with(Freed{{9'999}, {{0}, 1}}).contains("tensor 9999 is not alive"));
  EXPECT_TRUE(with(Allocated{{9'999}, {{40}, 9}}).contains("there are 48 blocks, and it names 9 from 40"));
  EXPECT_TRUE(with(Allocated{{UINT32_MAX}, {{0}, 1}}).contains("there is no tensor"));
  EXPECT_TRUE(with(KernelDone{{{77}, 0}}).contains("stream 77 runs no kernel"));
  EXPECT_TRUE(with(KernelQueued{{{77}, 0}}).contains("stream 77 has launched no kernel"));
  const auto plan = std::make_shared<FollowedPlan>();
  plan->commands.evictions.push_back({{0}, {3}, Tier::ssd});
  EXPECT_TRUE(with(Adopted{plan}).contains("an eviction of tensor 0 after kernel 3"));
  EXPECT_TRUE(with(Faulted{{UINT32_MAX - 1}, {{0}, 1}}).contains("there is no stream"));
  EXPECT_TRUE(with(MoveDone{{9'999}}).contains("move 9999 is not under way"));
}

TEST_F(JournalTest, IterationsThatEndInNoOrderAreRefused) {
  using enum IterationEnded::Place;
  IterationEnds ends;
  EXPECT_TRUE(ends.take({last, {5}})) << "the journal may have begun after it";
  EXPECT_FALSE(ends.take({next, {4}}));
  EXPECT_TRUE(ends.take({next, {5}}));
  EXPECT_EQ(ends.before({5}), 0u);
  EXPECT_EQ(ends.before({6}), 2u);
  EXPECT_TRUE(why_none(rewritten(record(9, 50, false), [&](Record& record) {
                if (auto* ended = std::get_if<IterationEnded>(&record)) ended->at = Nanos{9 - ended->at.value};
              })).contains("an iteration ends before an earlier one"));
}

TEST_F(JournalTest, WhatAnExecutorCannotTellApartIsRefused) {
  const auto plan_of = [](std::uint32_t kernels) {
    return std::make_shared<FollowedPlan>(FollowedPlan{.id = {1}, .kernels = kernels});
  };
  const auto ready = [](std::uint32_t serial) {
    return KernelReady{.launch = {{0}, serial}, .kernel = {7}, .accesses = {}, .waits = false, .plan = {1}};
  };
  Ledger ledger(4, true);
  ASSERT_TRUE(ledger.told(Adopted{plan_of(8)}, {}));
  ASSERT_TRUE(ledger.told(ready(5), {}));
  ASSERT_TRUE(ledger.told(KernelQueued{{{0}, 5}}, {}));
  EXPECT_FALSE(ledger.told(ready(3), {}));
  EXPECT_FALSE(ledger.told(Adopted{plan_of(2)}, {}));
  EXPECT_TRUE(ledger.told(ready(6), {}));
}

TEST_F(JournalTest, WhatIsNoJournalIsRefusedWithARemedy) {
  EXPECT_TRUE(why_none("").contains("is no journal"));
  EXPECT_TRUE(why_none("spillway-journal 8\n").contains("is a journal of version '8'"));
  EXPECT_TRUE(why_none("spillway-journal 9\n").contains("does not say what the run began with"));
  EXPECT_TRUE(why_none("spillway-journal 9\nzzzz").contains("damaged"));
  std::string flipped = record(10, 500, true);
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 0x10);
  why_none(flipped);  // An error or none, but no crash.
}

TEST_F(JournalTest, AFlippedBitIsDamageAndNoDifference) {
  record(12, 8'000, false);
  const std::string good = bytes();  // with its checksum, since the file is closed
  EXPECT_TRUE(rc::check([&] {
    std::string flipped = good;
    const auto at = *rc::gen::inRange<std::size_t>(good.find('\n') + 1, good.size());
    flipped[at] = static_cast<char>(flipped[at] ^ 1 << *rc::gen::inRange(0, 8));
    auto journal = JournalReader::open_bytes(flipped, "test");
    RC_ASSERT(journal.has_value());
    const auto done = replay(*journal);
    if (done) RC_ASSERT(!done->difference);
  }));
}

TEST_F(JournalTest, AForgedBeginningIsRefused) {
  const std::string good = record(11, 5, false);
  const auto with = [&](auto&& change) {
    return why_none(rewritten(good, [&](Record& record) {
      if (auto* beginning = std::get_if<Beginning>(&record)) change(*beginning);
    }));
  };
  EXPECT_TRUE(with([](Beginning& beginning) { beginning.blocks.front().count = UINT32_MAX; }).contains("more than"));
  EXPECT_TRUE(with([](Beginning& beginning) { beginning.blocks.front().placed = Tier::host; }).contains("host holds"));
  EXPECT_TRUE(with([](Beginning& beginning) { beginning.options.migration.chunk_blocks = 0; }).contains("no moves"));
  EXPECT_TRUE(with([](Beginning& beginning) { beginning.blocks.front().bytes = 4_MiB; }).contains("a block of"))
      << "it would have more pieces than there are";
  EXPECT_TRUE(with([](Beginning& beginning) {
                beginning.options.migration.splits_blocks = false;
                beginning.blocks.front().bytes = kMostBlockBytes + Bytes{1};
              }).contains("a block of"));
  EXPECT_TRUE(with([](Beginning& beginning) { beginning.options.window_blocks = 0; }).contains("keep no block"));
  EXPECT_TRUE(with([](Beginning& beginning) { beginning.online = "nobody"; }).contains("the policy 'nobody'"));
}

}  // namespace
}  // namespace spillway
