#include "report/progress.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

TEST(ProgressText, SaysHowFarOfHowMuch) {
  EXPECT_EQ(progress_text("simulating", 45, 100), "simulating   45 % (45 of 100)");
  EXPECT_EQ(progress_text("simulating", 100, 100), "simulating  100 % (100 of 100)");
  EXPECT_EQ(progress_text("recording", 7, 0), "recording  7");
}

TEST(ProgressText, SaysWhatIsLeftOnceThatIsKnown) {
  EXPECT_EQ(progress_text("simulating", 25, 100, Nanos{4'000'000'000}), "simulating   25 % (25 of 100), 12 s left");
  EXPECT_EQ(progress_text("simulating", 25, 100, Nanos{900'000'000}), "simulating   25 % (25 of 100)");
  EXPECT_EQ(progress_text("simulating", 0, 100, Nanos{4'000'000'000}), "simulating    0 % (0 of 100)");
  EXPECT_EQ(progress_text("simulating", 100, 100, Nanos{4'000'000'000}), "simulating  100 % (100 of 100)");
}

TEST(Progress, SaysNothingWhereNobodyLooks) {
  testing::internal::CaptureStderr();
  {
    Progress progress("working", 10);
    for (std::uint64_t done = 0; done <= 10; ++done) progress.at(done);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace spillway
