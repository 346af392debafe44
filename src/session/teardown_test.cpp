#include "session/teardown.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

namespace spillway {
namespace {

TEST(Teardown, IsOverWhereNobodyHasOpenedItAndOnceWhoHasIsGone) {
  const auto teardown = Teardown::make();
  ASSERT_TRUE(teardown);
  EXPECT_TRUE(teardown->is_over({}));
  std::optional<UniqueFd> end(::open(teardown->path().c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_FALSE(teardown->is_over({}));
  EXPECT_FALSE(teardown->is_over({10'000'000}));
  end.reset();
  EXPECT_TRUE(teardown->is_over({}));
}

}  // namespace
}  // namespace spillway
