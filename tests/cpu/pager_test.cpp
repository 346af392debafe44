#include "runtime/pager.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <latch>
#include <random>

#include "journalled.h"
#include "pager_support.h"
#include "policies/deepum.h"
#include "random_program.h"

namespace spillway {
namespace {

INSTANTIATE_TEST_SUITE_P(Paths, PagerTest, testing::ValuesIn(cases_here()), name_of);

// A plan that has nothing to do with what the program does.
std::shared_ptr<const RunPlan> random_plan(std::uint64_t seed, std::uint32_t blocks) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  const bool keeps_copies = below(2) == 0;
  FollowedPlan plan;
  plan.id.value = static_cast<std::uint32_t>(seed);
  plan.kernels = kKernels;
  plan.births.resize(kKernels);
  for (std::uint32_t tensor = 0; tensor < 40; ++tensor) {
    const BlockRange home{{below(blocks - 4)}, 1 + below(4)};
    plan.homes.push_back(home);
    plan.rows.push_back({home, {{below(kKernels)}}});
    plan.births[below(kKernels)].push_back(home);
  }
  for (std::uint32_t kernel = 0; kernel < kKernels; ++kernel) {
    for (int count = 0; count < 6; ++count) {
      plan.commands.evictions.push_back({{below(40)}, {kernel}, below(3) == 0 ? Tier::host : Tier::ssd});
      plan.commands.prefetches.push_back({{below(40)}, {kernel}, keeps_copies && below(2) == 0});
    }
  }
  return std::make_shared<const RunPlan>(std::move(plan));
}

// Expects anything.
class Liar final : public OnlinePolicy {
 public:
  void allocated(const Allocated& event, const PageTable&) override { homes_.push_back(event.blocks); }
  void freed(const Freed&) override {}
  std::vector<BlockRange> faulted(const Faulted&, const PageTable&) override { return {}; }
  Forecast kernel_ready(const KernelReady&, bool wanted) override {
    Forecast forecast{
        .anew = random_() % 3 == 0, .added = {}, .prefetches = {}, .births = kBlockBytes * (random_() % 4)};
    for (std::uint64_t count = random_() % 4; wanted && count > 0 && !homes_.empty(); --count) {
      const BlockRange home = homes_[random_() % homes_.size()];
      forecast.prefetches.push_back(home);
      forecast.added.push_back({home});
    }
    return forecast;
  }

 private:
  std::mt19937_64 random_{1};
  std::vector<BlockRange> homes_;  // of all tensors that there ever were
};

TEST_P(PagerTest, AWrongPlanCostsTimeAndNoBytes) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE(seed);
    const JournalOfATest journal;
    PagerConfig config = PagerTest::config();
    config.online = [](Bytes, const Parameters&) -> std::unique_ptr<OnlinePolicy> { return std::make_unique<Liar>(); };
    config.journal = journal.options();
    auto pager = started(config);
    const auto apart = pager->set_apart(kBlockBytes * 30);
    ASSERT_TRUE(apart);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 2; ++thread)
      threads.emplace_back([&, thread] {
        Program program(*pager, seed * 100 + static_cast<std::uint64_t>(thread),
                        {.most_bytes = 80 << 20, .apart = apart});
        for (unsigned step = 0; step < 60 * effort() && !testing::Test::HasFailure(); ++step) {
          if (step % 20 == 0) {
            const auto plan = random_plan(seed + static_cast<std::uint64_t>(step + thread), apart->end().value);
            pager->adopt({plan, &plan->followed});
            pager->make_room_for(plan->followed);
            program.follow(plan);
          }
          program.step();
        }
        program.finish();
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(resident_bytes(pager->cpu()->machine().range()) + resident_bytes(pager->cpu()->machine().staging()),
              (config.device + config.host).value);
    pager.reset();
    const auto again = [](const std::string&, Bytes) -> std::unique_ptr<OnlinePolicy> {
      return std::make_unique<Liar>();
    };
    EXPECT_GT(journal.replayed({.online = again}).plans, 0u);
  }
}

TEST_P(PagerTest, RandomProgramsSeeTheBytesThatTheyWroteWithinTheBudget) {
  Bytes from_ssd, from_host;
  std::uint64_t faults = 0;
  Nanos stall;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE(seed);
    const JournalOfATest journal;
    PagerConfig config = PagerTest::config();
    if (seed == 2) config.online = make_deepum;
    if (seed == 1) config.around_io = around<SlowIo>(1);
    config.journal = journal.options();
    config.keeps_copies = seed == 1;
    auto pager = started(config);
    constexpr int kThreads = 3;
    std::latch all_have_tensors(kThreads);  // Together they are more than device and host hold.
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&, thread] {
        Program program(*pager, seed * 100 + static_cast<std::uint64_t>(thread), {.most_bytes = 80 << 20});
        for (unsigned step = 0; step < 50 * effort() && !testing::Test::HasFailure(); ++step) program.step();
        all_have_tensors.arrive_and_wait();
        program.finish();
      });
    for (std::thread& thread : threads) thread.join();
    pager->script_ends();  // All that has moved has been told.
    const std::uint64_t held =
        resident_bytes(pager->cpu()->machine().range()) + resident_bytes(pager->cpu()->machine().staging());
    EXPECT_LE(held, (config.device + config.host).value);
    const MemoryFigures stats = pager->stats();
    EXPECT_LE(stats.peak.device, config.device);
    EXPECT_LE(stats.peak.host, config.host);
    from_ssd += stats.moved(Tier::ssd, Tier::device);
    from_host += stats.moved(Tier::host, Tier::device);
    faults += stats.faults;
    stall += stats.stall;
    pager.reset();
    EXPECT_EQ(journal.replayed().moved(Tier::ssd, Tier::device), stats.moved(Tier::ssd, Tier::device));
  }
  // Of both programs together: one that learns may happen to wait for nothing.
  EXPECT_GT(from_ssd, Bytes{});
  EXPECT_EQ(from_host > Bytes{}, config().host > Bytes{});
  EXPECT_GT(faults, 0u);
  EXPECT_GT(stall, Nanos{});
}

TEST_P(PagerTest, RandomProgramsGoOnWhereAllTiersAreAlmostFull) {
  PagerConfig config = PagerTest::config();
  const JournalOfATest journal;
  config.ssd_capacity = 64_MiB;
  config.online = make_deepum;
  config.keeps_copies = true;
  config.journal = journal.options();
  auto pager = started(config);
  constexpr int kThreads = 20;
  std::latch all_have_tensors(kThreads);  // Together they are more than device and host hold.
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      Program program(*pager, 1000 + thread, {.most_bytes = 40 << 20});
      for (unsigned step = 0; step < 30 * effort() && !testing::Test::HasFailure(); ++step) program.step();
      all_have_tensors.arrive_and_wait();
      program.finish();
    });
  for (std::thread& thread : threads) thread.join();
  const MemoryFigures stats = pager->stats();
  EXPECT_LE(stats.peak.device, config.device);
  EXPECT_LE(stats.peak.host, config.host);
  EXPECT_LE(stats.peak.ssd, config.ssd_capacity);
  EXPECT_GT(stats.peak.ssd, Bytes{});
  pager.reset();
  journal.replayed();
}

TEST_P(PagerTest, TheJournalHasTheIterationsThatEnded) {
  PagerConfig config = PagerTest::config();
  const JournalOfATest journal;
  config.journal = journal.options();
  auto pager = started(config);
  *granted(*pager, 1 << 20) = std::byte{1};  // The loop has served this fault, so the journal has begun.
  using enum IterationEnded::Place;
  for (const auto place : {next, next, first, next, last}) pager->iteration_ended({place, Nanos{7}});
  pager->script_ends();
  EXPECT_EQ(journal.replayed().iterations, 2u) << "a script's pager is not destroyed";
}

TEST_P(PagerTest, MoreThreadsThanThereAreStreamsWorkAllTheSame) {
  auto pager = started(config());
  std::byte* tensor = granted(*pager, 1 << 20);
  for (std::uint32_t thread = 0; thread < Streams::kMost + 10; thread += 2) {
    const auto kernel = [&] {
      const StreamId stream = pager->this_stream();
      const ByteExtent extents[] = {{tensor, 1 << 20, true, false}};
      pager->kernel_ready(stream, {}, extents);
      static_cast<volatile std::byte*>(tensor)[0] = std::byte{1};
      pager->kernel_done(stream);
    };
    std::thread first(kernel);
    first.join();
    std::thread second(kernel);
    second.join();
  }
  std::byte* large = granted(*pager, 100 << 20);
  fill(large, 100 << 20, 1);
  EXPECT_TRUE(holds(large, 100 << 20, 1));
}

// Follows how much memory the kernel says this process holds, all the time.
class ResidentWatch {
 public:
  ResidentWatch()
      : before_(resident()), thread_([this] {
          while (!stop_) most_ = std::max(most_, resident());
        }) {}
  std::uint64_t most_more_bytes() {
    stop_ = true;
    thread_.join();
    return most_ > before_ ? most_ - before_ : 0;
  }

 private:
  static std::uint64_t resident() {
    unsigned long size = 0, pages = 0;
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    CHECK(file != nullptr && std::fscanf(file, "%lu %lu", &size, &pages) == 2);
    std::fclose(file);
    return pages * 4096;
  }
  std::uint64_t before_, most_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST_P(PagerTest, EveryByteOfTwiceTheBudgetComesBackAndTheKernelNeverCountsMoreThanTheBudget) {
  const PagerConfig config = PagerTest::config();
  auto pager = started(config);
  ResidentWatch watch;
  const std::size_t count = 2 * (config.device + config.host).value / kBlockBytes.value / 3;
  constexpr std::size_t kBytes = 3 * 2097152 - 4096;
  std::vector<std::byte*> tensors;
  for (std::size_t index = 0; index < count; ++index) {
    tensors.push_back(granted(*pager, kBytes));
    fill(tensors.back(), kBytes, index);
  }
  for (int round = 0; round < 2; ++round)
    for (std::size_t index = 0; index < count; ++index) EXPECT_TRUE(holds(tensors[index], kBytes, index)) << index;
  for (std::byte* tensor : tensors) pager->free(tensor);
  constexpr std::uint64_t kOtherMemory = 2 << 20;  // The kernel's counters lag, and malloc takes some.
  const std::uint64_t most = watch.most_more_bytes();
  if (!kSanitized) {  // Their shadow memory counts, too.
    EXPECT_LE(most, (config.device + config.host).value + kOtherMemory);
  }
  EXPECT_LE(resident_bytes(pager->cpu()->machine().range()) + resident_bytes(pager->cpu()->machine().staging()),
            (config.device + config.host).value);
}

// Also before anything is planned; what is written through a pointer is, and nothing else.
TEST_P(PagerTest, WhatIsOnlyReadIsWrittenOnceWhereCopiesAreKept) {
  PagerConfig keeping = config();
  keeping.host = {};
  keeping.keeps_copies = true;
  auto pager = started(keeping);
  const auto tensors = more_than_fits(*pager);
  EXPECT_TRUE(all_hold(tensors, 0));  // By then each has been away.
  const Bytes before = pager->stats().written;
  for (int round = 0; round < 3; ++round) EXPECT_TRUE(all_hold(tensors, 0));
  EXPECT_EQ(pager->stats().written, before);
  EXPECT_GT(pager->stats().dropped_clean, Bytes{kLarge * kTensors});
  EXPECT_EQ(pager->stats().unseen_writes, 0u);
  fill(tensors[2], 64, 99);
  for (int round = 0; round < 2; ++round)
    for (std::size_t index = 0; index < kTensors; ++index)
      EXPECT_TRUE(index == 2 ? holds(tensors[index], 64, 99) : holds(tensors[index], kLarge, index)) << index;
}

TEST_P(PagerTest, WhatFitsIsNeverMoved) {
  auto pager = started(config());
  for (int round = 0; round < 10; ++round) {
    std::vector<std::byte*> tensors;
    for (int index = 0; index < 9; ++index) tensors.push_back(granted(*pager, 3 << 20));
    for (std::byte* tensor : tensors) fill(tensor, 3 << 20, 5);
    for (std::byte* tensor : tensors) pager->free(tensor);
  }
  const MemoryFigures stats = pager->stats();
  for (const Tier from : kTiers)
    for (const Tier to : kTiers)
      if (from != to) {
        EXPECT_EQ(stats.moved(from, to), Bytes{});
      }
}

TEST_P(PagerTest, ManyThreadsWithASmallBudgetAreSlowNotStuck) {
  PagerConfig config = PagerTest::config();
  config.device = kBlockBytes * 20;
  auto pager = started(config);
  std::byte* from = granted(*pager, 60 << 20);
  std::byte* to = granted(*pager, 60 << 20);
  fill(from, 60 << 20, 1);
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < 10; ++thread)
    threads.emplace_back([&, thread] {
      std::memcpy(to + thread * (6 << 20), from + thread * (6 << 20), 6 << 20);
      EXPECT_EQ(std::memcmp(to + thread * (6 << 20), from + thread * (6 << 20), 6 << 20), 0);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(holds(to, 60 << 20, 1));
}

TEST_P(PagerTest, DeadBlocksAreReusedUnderPressureWithoutLosingWhatIsWritten) {
  auto pager = started(config());
  std::byte* large = granted(*pager, 100 << 20);
  fill(large, 100 << 20, 1);
  std::atomic<bool> stop{false};
  std::thread sweeper([&] {
    while (!stop)
      for (std::size_t at = 0; at < 100 << 20; at += 1 << 20) static_cast<volatile std::byte*>(large)[at] = large[at];
  });
  for (std::uint64_t round = 0; round < 100 * effort(); ++round) {
    std::byte* tensor = granted(*pager, 3 << 20);
    fill(tensor, 3 << 20, round);
    EXPECT_TRUE(holds(tensor, 3 << 20, round));
    pager->free(tensor);
  }
  stop = true;
  sweeper.join();
  EXPECT_TRUE(holds(large, 100 << 20, 1));
}

}  // namespace
}  // namespace spillway
