#include "reproduce/outcome_file.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

Outcome some_outcome() {
  Outcome outcome{.feasible = true,
                  .iteration_seconds = 7.125,
                  .ideal_seconds = 7,
                  .first_iteration_seconds = 8.5,
                  .stall_seconds = 0.25,
                  .hidden_seconds = 0.1 + 0.2,
                  .faults = 44,
                  .kernels = 100,
                  .slowed_kernels = 3,
                  .slowdown = {1, 1.5, 2},
                  .peak = Bytes{31},
                  .unlimited_peak = Bytes{62},
                  .moved = {},
                  .flash_years = 3.7};
  outcome.moved(Tier::device, Tier::ssd) = Bytes{12'345'678'901};
  outcome.moved(Tier::host, Tier::device) = Bytes{17};
  return outcome;
}

TEST(OutcomeFile, BringsBackWhatWasKept) {
  const Outcome kept = some_outcome();
  const auto read = from_cache_text(to_cache_text(kept, "key"), "key");
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->feasible);
  EXPECT_EQ(read->iteration_seconds, kept.iteration_seconds);
  EXPECT_EQ(read->hidden_seconds, kept.hidden_seconds);
  EXPECT_EQ(read->faults, 44u);
  EXPECT_EQ(read->slowed_kernels, 3u);
  EXPECT_EQ(read->slowdown, kept.slowdown);
  EXPECT_EQ(read->flash_years, kept.flash_years);
  EXPECT_EQ(read->first_iteration_seconds, kept.first_iteration_seconds);
  EXPECT_EQ(read->stall_seconds, kept.stall_seconds);
  EXPECT_EQ(read->peak, kept.peak);
  EXPECT_EQ(read->unlimited_peak, kept.unlimited_peak);
  for (const Tier from : kTiers)
    for (const Tier to : kTiers)
      if (from != to) {
        EXPECT_EQ(read->moved(from, to), kept.moved(from, to));
      }
}

TEST(OutcomeFile, KnowsWhatEndsNever) {
  Outcome outcome = some_outcome();
  outcome.flash_years = std::nullopt;
  const auto read = from_cache_text(to_cache_text(outcome, "key"), "key");
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->flash_years);
}

TEST(OutcomeFile, IsNotUsedForAnotherKey) {
  EXPECT_FALSE(from_cache_text(to_cache_text(some_outcome(), "policy=uvm"), "policy=g10"));
  EXPECT_NE(cache_file_name("policy=uvm"), cache_file_name("policy=g10"));
}

TEST(OutcomeFile, IsNotUsedIfItIsDamaged) {
  const std::string text = to_cache_text(some_outcome(), "key");
  for (std::size_t length = 0; length + 2 < text.size(); length += 7)
    EXPECT_FALSE(from_cache_text(text.substr(0, length), "key")) << length;
  EXPECT_FALSE(from_cache_text("[]", "key"));
  EXPECT_FALSE(from_cache_text(R"({"version": 1, "key": "key", "feasible": "yes"})", "key"));
}

}  // namespace
}  // namespace spillway
