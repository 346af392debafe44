#include "session/own_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace spillway {
namespace {

constexpr Nanos kNever{};
constexpr Nanos kSoon{50'000'000};

std::string error_of(Nanos limit, const std::function<Result<int>()>& body) {
  const auto result = in_own_process<int>({"/ssd", limit, "it was asked"}, body);
  return result ? "none" : result.error().message;
}

TEST(OwnProcess, TellsWhatItFound) {
  const auto found = in_own_process<int>({"/ssd", kNever, ""}, []() -> Result<int> { return 7; });
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, 7);
}

TEST(OwnProcess, TellsWhatFailed) {
  const auto failed =
      in_own_process<int>({"/ssd", kNever, ""}, []() -> Result<int> { return fail(Errc::out_of_memory, "no room"); });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::out_of_memory);
  EXPECT_EQ(failed.error().message, "no room");
}

TEST(OwnProcess, OneThatWaitsForEverIsAnErrorThatNamesTheDisk) {
  EXPECT_TRUE(error_of(kSoon, []() -> Result<int> {
                ::pause();
                return 0;
              }).contains("/ssd has not answered for 50 ms: it was asked"));
}

TEST(OwnProcess, OneThatDiesIsAnErrorWithItsStatus) {
  EXPECT_TRUE(error_of(kNever, []() -> Result<int> { ::_exit(5); }).contains("status 5"));
}

}  // namespace
}  // namespace spillway
