#include "machines/sim/links.h"

#include <gtest/gtest.h>

#include <map>

namespace spillway {
namespace {

constexpr LinkRates kRates{.to_device = 10e9, .from_device = 10e9, .ssd_read = 4e9, .ssd_write = 2e9};

Move move(std::uint32_t id, Tier from, Tier to, Urgency urgency = Urgency::plan) {
  return {.id = {id}, .blocks = {{0}, 1}, .from = from, .to = to, .urgency = urgency};
}

// When each move ends, in nanoseconds, if all of them start at once.
std::map<std::uint32_t, std::uint64_t> ends(Links& links) {
  std::map<std::uint32_t, std::uint64_t> result;
  std::vector<Move> ended;
  while (const auto next = links.next_change()) {
    ended.clear();
    links.advance(*next, ended);
    for (const Move& over : ended) result[over.id.value] = next->value;
  }
  return result;
}

TEST(Links, AMoveTakesItsLatencyAndItsBytesOverTheSlowestRate) {
  LinkRates rates = kRates;
  rates.ssd_read_latency = Nanos{500};
  Links links(rates);
  links.start(move(1, Tier::host, Tier::device), {Bytes{10'000}});
  links.start(move(2, Tier::device, Tier::ssd), {Bytes{10'000}});
  EXPECT_EQ(ends(links), (std::map<std::uint32_t, std::uint64_t>{{1, 1000}, {2, 5000}}));
  Links reading(rates);
  reading.start(move(3, Tier::ssd, Tier::device), {Bytes{4'000}});
  EXPECT_EQ(ends(reading), (std::map<std::uint32_t, std::uint64_t>{{3, 1500}}));
}

TEST(Links, HostTrafficGetsWhatTheSsdCannotUse) {
  Links links(kRates);
  links.start(move(1, Tier::ssd, Tier::device), {Bytes{40'000}});   // 4 GB/s
  links.start(move(2, Tier::host, Tier::device), {Bytes{60'000}});  // the other 6
  EXPECT_EQ(ends(links), (std::map<std::uint32_t, std::uint64_t>{{1, 10'000}, {2, 10'000}}));
}

TEST(Links, AnIdleWayLeavesItsShareToTheOther) {
  LinkRates rates = kRates;
  rates.ssd_read = 100e9;
  Links links(rates);
  links.start(move(1, Tier::ssd, Tier::device), {Bytes{10'000}});   // 5 and 5 until 2000
  links.start(move(2, Tier::host, Tier::device), {Bytes{20'000}});  // then 10
  EXPECT_EQ(ends(links), (std::map<std::uint32_t, std::uint64_t>{{1, 2000}, {2, 3000}}));
}

TEST(Links, TheTwoDirectionsDoNotDisturbEachOther) {
  Links links(kRates);
  links.start(move(1, Tier::device, Tier::host), {Bytes{10'000}});
  links.start(move(2, Tier::host, Tier::device), {Bytes{10'000}});
  EXPECT_EQ(ends(links), (std::map<std::uint32_t, std::uint64_t>{{1, 1000}, {2, 1000}}));
}

TEST(Links, AFaultTakesTheLinkFromAPlannedMoveThatGoesOnAfterwards) {
  Links links(kRates);
  links.start(move(1, Tier::host, Tier::device), {Bytes{10'000}});
  std::vector<Move> ended;
  links.advance(Nanos{400}, ended);
  links.start(move(2, Tier::host, Tier::device, Urgency::fault), {Bytes{10'000}});
  EXPECT_EQ(ends(links), (std::map<std::uint32_t, std::uint64_t>{{2, 1400}, {1, 2000}}));
}

TEST(Links, FaultsMoveNoFasterThanTheyAreHandled) {
  Links links(kRates);
  links.start(move(1, Tier::host, Tier::device, Urgency::fault), {.bytes = 2_MiB, .least = Nanos{640'000}});
  EXPECT_EQ(ends(links), (std::map<std::uint32_t, std::uint64_t>{{1, 640'000}}));
}

// The greater of both, not their sum.
TEST(Links, WhileFaultsAreHandledTheLinksLatencyPasses) {
  LinkRates rates = kRates;
  rates.host_latency = Nanos{100'000};
  for (const std::uint64_t least : {640'000, 300'000}) {
    Links links(rates);
    links.start(move(1, Tier::host, Tier::device, Urgency::fault), {.bytes = 2_MiB, .least = Nanos{least}});
    EXPECT_EQ(ends(links).at(1), std::max<std::uint64_t>(least, 309'716));  // 100'000 + 2 MiB at 10 bytes each
  }
}

TEST(Links, APlannedMoveGetsWhatSlowFaultsLeaveOfTheLink) {
  Links links(kRates);
  links.start(move(1, Tier::host, Tier::device), {Bytes{6'000'000}});
  // 4 bytes per nanosecond of the link's 10.
  links.start(move(2, Tier::host, Tier::device, Urgency::fault), {.bytes = 2_MiB, .least = Nanos{524'288}});
  EXPECT_EQ(ends(links), (std::map<std::uint32_t, std::uint64_t>{{1, 809'716}, {2, 524'288}}));
}

// Reading 4000 bytes takes 500 ns of the flash, writing 4000 takes 3000: together it is busy for 3500. Both get the
// same rate r: r (500 + 3000) / 4000 = 1, until both have moved 4000 bytes.
TEST(Links, ReadsAndWritesShareTheTimeOfTheFlash) {
  Links links(kRates, [](const Move& move) { return move.from == Tier::ssd ? 500.0 : 3000.0; });
  links.start(move(1, Tier::ssd, Tier::device), {Bytes{4'000}});
  links.start(move(2, Tier::device, Tier::ssd), {Bytes{4'000}});
  EXPECT_EQ(ends(links), (std::map<std::uint32_t, std::uint64_t>{{1, 3500}, {2, 3500}}));
}

TEST(Links, FlashThatIsFasterThanTheRatesOfTheSsdChangesNothing) {
  std::uint32_t asked = 0;
  Links links(kRates, [&](const Move&) { return static_cast<double>(++asked); });
  links.start(move(1, Tier::ssd, Tier::device), {Bytes{4'000}});
  links.start(move(2, Tier::device, Tier::ssd), {Bytes{4'000}});
  links.start(move(3, Tier::device, Tier::ssd), {Bytes{4'000}});
  EXPECT_TRUE(links.next_change());
  EXPECT_EQ(asked, 2u) << "the third has not begun";
  EXPECT_EQ(ends(links), (std::map<std::uint32_t, std::uint64_t>{{1, 1000}, {2, 2000}, {3, 4000}}));
  EXPECT_EQ(asked, 3u);
}

TEST(Links, ACancelledMoveIsGone) {
  Links links(kRates);
  links.start(move(1, Tier::device, Tier::host), {Bytes{10'000}});
  EXPECT_TRUE(links.cancel({1}));
  EXPECT_FALSE(links.cancel({1}));
  EXPECT_FALSE(links.next_change());
}

TEST(Links, NoWorkIsLostHoweverOftenTimeIsCut) {
  Links whole(kRates), cut(kRates);
  std::vector<Move> ended;
  for (Links* links : {&whole, &cut}) {
    links->start(move(1, Tier::ssd, Tier::device), {Bytes{33'333}});
    links->start(move(2, Tier::host, Tier::device), {Bytes{77'777}});
  }
  for (std::uint64_t at = 7; at < 5'000; at += 7) cut.advance(Nanos{at}, ended);
  ASSERT_TRUE(ended.empty());
  EXPECT_EQ(ends(whole), ends(cut));
}

}  // namespace
}  // namespace spillway
