#include "runtime/drift.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

constexpr DriftBasis kBasis{.sum = {1'000}, .ssd_read = {1'000}, .ssd_write = {2'000}};

TEST(Drift, TimesMayChangeByATwentiethAndRatesByAQuarter) {
  EXPECT_FALSE(has_drifted(kBasis, kBasis));
  EXPECT_FALSE(has_drifted(kBasis, {.sum = {1'050}, .ssd_read = {750}, .ssd_write = {2'500}}));
  EXPECT_TRUE(has_drifted(kBasis, {.sum = {1'051}, .ssd_read = {1'000}, .ssd_write = {2'000}}));
  EXPECT_TRUE(has_drifted(kBasis, {.sum = {949}, .ssd_read = {1'000}, .ssd_write = {2'000}}));
  EXPECT_TRUE(has_drifted(kBasis, {.sum = {1'000}, .ssd_read = {749}, .ssd_write = {2'000}}));
  EXPECT_TRUE(has_drifted(kBasis, {.sum = {1'000}, .ssd_read = {1'000}, .ssd_write = {2'501}}));
}

}  // namespace
}  // namespace spillway
