// Many small programs, most of which move in host memory only, for the SSD shall not be worn out by them: it serves
// every hundredth. SPILLWAY_TEST_PROGRAMS says how many for each path.
#include <atomic>
#include <cstdlib>
#include <thread>

#include "policies/deepum.h"
#include "random_program.h"

namespace spillway {
namespace {

using RandomProgramsTest = PagerTest;
INSTANTIATE_TEST_SUITE_P(Paths, RandomProgramsTest, testing::Values(kCases[2], kCases[3]), name_of);

TEST_P(RandomProgramsTest, SeeTheBytesThatTheyWrote) {
  const char* wanted = std::getenv("SPILLWAY_TEST_PROGRAMS");
  const std::uint64_t programs = (wanted != nullptr ? std::stoull(wanted) : 1'500) / (kSanitized ? 40 : 1);
  PagerConfig small = config();
  small.device = kBlockBytes * 8;
  small.host = kBlockBytes * 12;
  small.online = make_deepum;
  auto pager = started(small);
  small.host = {};
  small.keeps_copies = true;
  auto without_host = started(small);
  std::atomic<std::uint64_t> next{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread)
    threads.emplace_back([&] {
      for (std::uint64_t seed; (seed = next++) < programs && !testing::Test::HasFailure();) {
        SCOPED_TRACE(seed);
        const bool to_ssd = seed % 100 == 99;  // More than the device holds, whatever the other thread does.
        Program program(to_ssd ? *without_host : *pager, seed,
                        {.most_bytes = to_ssd ? 40u << 20 : 14u << 20, .largest = to_ssd ? 12u << 20 : 4u << 20});
        for (int step = 0; step < 24 && !testing::Test::HasFailure(); ++step) program.step();
        program.finish();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(pager->stats().moved(Tier::host, Tier::device), Bytes{});
  if (kSanitized) return;  // There are too few of these to count on.
  EXPECT_GT(without_host->stats().moved(Tier::ssd, Tier::device), Bytes{});
  EXPECT_GT(without_host->stats().dropped_clean, Bytes{});
}

}  // namespace
}  // namespace spillway
