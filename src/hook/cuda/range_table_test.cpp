#include "hook/cuda/range_table.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <vector>

namespace spillway {
namespace {

constexpr std::uint64_t kMiB = 1u << 20, kGiB = 1u << 30;

std::vector<std::uint64_t> ids_in(const RangeTable& table, std::uint64_t begin, std::uint64_t bytes) {
  std::vector<std::uint64_t> ids;
  table.for_each_in(begin, bytes, [&](const CudaRange& range) { ids.push_back(range.id); });
  return ids;
}

TEST(RangeTable, AnAddressBelongsToTheRangeThatHoldsIt) {
  RangeTable table;
  EXPECT_EQ(table.find(0), nullptr);
  ASSERT_TRUE(table.add({.begin = 5 * kGiB + 512, .bytes = 3 * kMiB, .id = 7}));
  for (const std::uint64_t inside : {0ul, 1ul, kMiB, 2 * kMiB, 3 * kMiB - 1}) {
    const CudaRange* found = table.find(5 * kGiB + 512 + inside);
    ASSERT_NE(found, nullptr) << inside;
    EXPECT_EQ(found->id, 7u);
  }
  EXPECT_EQ(table.find(5 * kGiB + 511), nullptr);
  EXPECT_EQ(table.find(5 * kGiB + 512 + 3 * kMiB), nullptr);
  EXPECT_EQ(table.find(~std::uint64_t{0}), nullptr);
  EXPECT_TRUE(table.remove(5 * kGiB + 512));
  EXPECT_EQ(table.find(5 * kGiB + 512), nullptr);
  EXPECT_FALSE(table.remove(5 * kGiB + 512));
}

TEST(RangeTable, WhatIsEmptyOutsideOrOverlapsIsRefused) {
  RangeTable table;
  EXPECT_FALSE(table.add({.begin = kGiB, .bytes = 0, .id = 1}));
  EXPECT_FALSE(table.add({.begin = std::uint64_t{1} << 47, .bytes = 1, .id = 1}));
  EXPECT_FALSE(table.add({.begin = (std::uint64_t{1} << 47) - 1, .bytes = 2, .id = 1}));
  EXPECT_FALSE(table.add({.begin = kGiB, .bytes = ~std::uint64_t{0}, .id = 1}));
  EXPECT_TRUE(table.add({.begin = kGiB, .bytes = 64 * kGiB, .id = 1}));
  EXPECT_FALSE(table.add({.begin = 40 * kGiB, .bytes = 1, .id = 2}));
  EXPECT_FALSE(table.add({.begin = kGiB / 2, .bytes = kGiB, .id = 2}));
  EXPECT_FALSE(table.remove(40 * kGiB)) << "none begins there";
  EXPECT_EQ(table.find(40 * kGiB)->id, 1u);
  EXPECT_TRUE(table.add({.begin = 65 * kGiB, .bytes = 1, .id = 3}));
  EXPECT_EQ(ids_in(table, 0, 200 * kGiB), (std::vector<std::uint64_t>{1, 3}));
}

// Beside a plain map, on a few places where granules (2 MiB) and leaves (16 GiB) begin and end.
RC_GTEST_PROP(RangeTable, AnswersAsAMapOfRangesDoes, ()) {
  RangeTable table;
  std::map<std::uint64_t, CudaRange> model;
  const auto place =
      rc::gen::apply([](std::uint64_t base, std::uint64_t unit, std::uint64_t count) { return base + unit * count; },
                     rc::gen::element<std::uint64_t>(16 * kGiB - 4 * kMiB, 32 * kGiB - 8 * kMiB),
                     rc::gen::element<std::uint64_t>(1, 512, kMiB), rc::gen::inRange<std::uint64_t>(0, 12));
  const auto size =
      rc::gen::apply([](std::uint64_t unit, std::uint64_t count) { return unit * count; },
                     rc::gen::element<std::uint64_t>(1, 512, kMiB, 8 * kGiB), rc::gen::inRange<std::uint64_t>(0, 5));
  const auto first_in = [&](std::uint64_t begin, std::uint64_t bytes) {
    auto next = model.upper_bound(begin);
    if (next != model.begin()) {
      const auto before = std::prev(next);
      if (begin - before->first < before->second.bytes) next = before;
    }
    return next == model.end() || (next->first > begin && next->first - begin >= bytes) ? model.end() : next;
  };
  const int steps = *rc::gen::inRange(0, 60);
  for (int step = 0; step < steps; ++step) {
    const std::uint64_t begin = *place, bytes = *size;
    if (*rc::gen::inRange(0, 3) == 0) {
      RC_ASSERT(table.remove(begin) == (model.erase(begin) == 1));
    } else {
      const bool is_free = bytes > 0 && first_in(begin, bytes) == model.end();
      const CudaRange range{.begin = begin, .bytes = bytes, .id = static_cast<std::uint64_t>(step)};
      RC_ASSERT(table.add(range) == is_free);
      if (is_free) model.emplace(begin, range);
    }
    const std::uint64_t address = *place, extent = *size;
    const auto expected = first_in(address, 1);
    const CudaRange* found = table.find(address);
    RC_ASSERT((found != nullptr) == (expected != model.end()));
    if (found != nullptr) RC_ASSERT(found->id == expected->second.id);
    std::vector<std::uint64_t> ids;
    if (extent > 0)
      for (auto next = first_in(address, extent); next != model.end(); ++next)
        if (next->first <= address || next->first - address < extent) ids.push_back(next->second.id);
    RC_ASSERT(ids_in(table, address, extent) == ids);
  }
}

}  // namespace
}  // namespace spillway
