#include "recorder/follower.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <optional>
#include <vector>

namespace spillway {
namespace {

using Place = std::optional<std::uint32_t>;

TEST(Follower, CountsThroughIterationsThatAreAllAlike) {
  Follower follower({7, 8, 7, 9}, {4});
  for (int iteration = 0; iteration < 3; ++iteration) {
    for (std::uint32_t place = 0; const std::uint64_t kernel : {7, 8, 7, 9})
      EXPECT_EQ(follower.next(kernel), Place(place++));
    follower.anchor();
  }
}

TEST(Follower, WhatIsNoPartOfTheIterationHasNoPlace) {
  Follower follower({1, 2, 3}, {3});
  EXPECT_EQ(follower.next(50), Place());
  EXPECT_EQ(follower.next(1), Place(0));
  EXPECT_EQ(follower.next(51), Place());
  EXPECT_EQ(follower.next(52), Place());
  EXPECT_EQ(follower.next(2), Place(1));
  EXPECT_EQ(follower.next(3), Place(2));
}

TEST(Follower, FindsItsPlaceAfterKernelsThatWereLeftOut) {
  Follower follower({1, 2, 3, 4, 5, 6, 7}, {7});
  EXPECT_EQ(follower.next(1), Place(0));
  EXPECT_EQ(follower.next(4), Place());
  EXPECT_EQ(follower.next(5), Place());
  EXPECT_EQ(follower.next(6), Place(5));
  EXPECT_EQ(follower.next(7), Place(6));
}

TEST(Follower, StartsAgainAtTheNextIteration) {
  Follower follower({1, 2, 3, 4}, {4});
  EXPECT_EQ(follower.next(1), Place(0));
  follower.anchor();  // the rest was not run
  EXPECT_EQ(follower.next(1), Place(0));
}

TEST(Follower, StepsWithinTheIterationDoNotEndIt) {
  Follower follower({1, 2, 3, 4}, {2, 4});
  for (int iteration = 0; iteration < 2; ++iteration)
    for (std::uint32_t place = 0; place < 4; ++place) {
      EXPECT_EQ(follower.next(place + 1), Place(place));
      if (place % 2 == 1) follower.anchor();
    }
}

// Two models of the same shapes in turns: what is known of them by their memory puts right what operators cannot tell.
TEST(Follower, StepsThatAreKnownPutItInItsPlace) {
  Follower follower({1, 2, 1, 2}, {2, 4});
  follower.anchor(1);  // Where the plan is taken up, the script is in the middle of it.
  EXPECT_EQ(follower.next(1), Place(2));
  EXPECT_EQ(follower.next(2), Place(3));
  follower.anchor(0);
  EXPECT_EQ(follower.next(1), Place(0));
  EXPECT_EQ(follower.next(2), Place(1));
  follower.anchor();  // Another one has made this step, or it had something else in it.
  EXPECT_EQ(follower.next(1), Place(2));
  follower.anchor(0);
  EXPECT_EQ(follower.next(1), Place(0));
}

TEST(FollowerProperty, PlacesOnlyGrowAndAgreeWithTheKernel) {
  EXPECT_TRUE(rc::check([] {
    const auto kernels = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 4));
    Follower follower(kernels, {static_cast<std::uint32_t>(kernels.size())});
    Place last;
    for (const std::uint64_t kernel :
         *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 5))) {
      const Place place = follower.next(kernel);
      if (!place) continue;
      RC_ASSERT(*place < kernels.size());
      RC_ASSERT(kernels[*place] == kernel);
      const bool grows = !last || *last < *place;
      RC_ASSERT(grows);
      last = place;
    }
  }));
}

}  // namespace
}  // namespace spillway
