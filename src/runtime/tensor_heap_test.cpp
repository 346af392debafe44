#include "runtime/tensor_heap.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace spillway {
namespace {

TensorHeap::Place put(TensorHeap& heap, Bytes bytes) {
  const auto place = heap.propose(bytes);
  CHECK(place.has_value());
  return heap.commit(*place);
}

TEST(TensorHeap, SmallTensorsShareABlock) {
  TensorHeap heap(64, kBlockBytes);
  put(heap, Bytes{100});
  put(heap, Bytes{4000});
  EXPECT_EQ(heap.blocks_in_use(), 1u);
}

TEST(TensorHeap, TheEndOfALargeTensorSharesItsBlockWithTheNext) {
  TensorHeap heap(64, kBlockBytes);
  const auto first = put(heap, 5_MiB);
  const auto second = put(heap, 5_MiB);
  EXPECT_EQ(heap.blocks_in_use(), 5u);
  EXPECT_EQ(first.blocks.count, 3u);
  EXPECT_EQ(second.blocks.first, BlockId{first.blocks.end().value - 1});
}

TEST(TensorHeap, AProposalSaysHowManyMoreBlocksItWouldUse) {
  TensorHeap heap(64, kBlockBytes);
  put(heap, 5_MiB);
  const auto proposed = heap.propose(5_MiB);
  ASSERT_TRUE(proposed);
  EXPECT_EQ(heap.new_blocks(*proposed), 2u);
  heap.cancel(*proposed);
  EXPECT_EQ(heap.blocks_in_use(), 3u);
}

TEST(TensorHeap, ADeadTensorGivesItsBlocksAndItsIdBack) {
  TensorHeap heap(64, kBlockBytes);
  const auto first = put(heap, 5_MiB);
  const auto gone = heap.remove(first.offset);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->tensor, first.tensor);
  EXPECT_EQ(heap.blocks_in_use(), 0u);
  EXPECT_EQ(heap.remove(first.offset), std::nullopt);
  const auto again = put(heap, 5_MiB);
  EXPECT_EQ(again.tensor, first.tensor);
  EXPECT_EQ(again.offset, first.offset);
}

TEST(TensorHeap, GivesAwayAllAddressesToTensorsOfOneSize) {
  for (const Bytes bytes : {1_MiB, 512_KiB}) {
    TensorHeap heap(64, kBlockBytes);
    std::vector<TensorHeap::Place> places;
    while (const auto proposed = heap.propose(bytes)) places.push_back(heap.commit(*proposed));
    EXPECT_EQ(places.size(), 128_MiB .value / bytes.value);
    for (const TensorHeap::Place& place : places) EXPECT_TRUE(heap.remove(place.offset));
    EXPECT_TRUE(heap.propose(96_MiB));  // The holes have joined again.
  }
}

TEST(TensorHeap, WhatIsSetApartHoldsTensorsAtTheirPlacesOnly) {
  TensorHeap heap(64, kBlockBytes);
  const auto apart = heap.set_apart(10);
  ASSERT_TRUE(apart);
  const std::uint64_t begin = kBlockBytes.value * apart->first.value;
  const auto one = heap.propose_at(begin + 4096, 3_MiB);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->offset, begin + 4096);
  heap.commit(*one);
  EXPECT_FALSE(heap.propose_at(begin, 1_MiB));
  EXPECT_FALSE(heap.propose_at(begin + 4096 + (3 << 20) - 1, 1_MiB));
  EXPECT_FALSE(heap.propose_at(begin + (19 << 20), 2_MiB));
  EXPECT_FALSE(heap.propose_at(begin + (8 << 20), Bytes{std::uint64_t{1} << 53})) << "more blocks than have numbers";
  EXPECT_TRUE(heap.propose_at(begin + 4096 + (3 << 20), 1_MiB));
  while (const auto other = heap.propose(1_MiB)) {
    heap.commit(*other);
    EXPECT_TRUE(other->blocks.end() <= apart->first || apart->end() <= other->blocks.first);
  }
}

TEST(TensorHeap, WhatWasSetApartServesAllAfterItsLastTensor) {
  TensorHeap heap(64, kBlockBytes);
  const auto apart = heap.set_apart(40);
  ASSERT_TRUE(apart);
  EXPECT_FALSE(heap.propose(40_MiB));
  const auto tensor = heap.propose_at(kBlockBytes.value * apart->first.value, 3_MiB);
  heap.commit(*tensor);
  heap.end_apart(*apart);
  EXPECT_FALSE(heap.propose_at(kBlockBytes.value * apart->first.value + (8 << 20), 3_MiB));
  EXPECT_FALSE(heap.propose(40_MiB));
  EXPECT_TRUE(heap.remove(tensor->offset));
  EXPECT_TRUE(heap.propose(90_MiB));
}

TEST(TensorHeap, NothingCanBeSetApartAndGivenUp) {
  TensorHeap heap(64, kBlockBytes);
  const auto apart = heap.set_apart(0);
  ASSERT_TRUE(apart);
  EXPECT_EQ(apart->count, 0u);
  heap.end_apart(*apart);
}

TEST(TensorHeap, RefusesWhatIsLargerThanAllAddresses) {
  TensorHeap heap(64, kBlockBytes);
  EXPECT_FALSE(heap.propose(Bytes{UINT64_MAX - 5}));
  EXPECT_FALSE(heap.propose(200_MiB));
}

RC_GTEST_PROP(TensorHeap, CountsWhatLivesInItWhateverComesAndGoes, (const std::vector<std::uint32_t>& choices)) {
  const Bytes block_bytes = *rc::gen::element(kBlockBytes, 8_MiB);
  TensorHeap heap(32, block_bytes);
  std::vector<std::uint64_t> offsets;
  std::vector<BlockRange> apart;
  const auto keep = [&](const std::optional<TensorHeap::Place>& proposed, bool is_committed) {
    if (proposed && is_committed) offsets.push_back(heap.commit(*proposed).offset);
    if (proposed && !is_committed) heap.cancel(*proposed);
  };
  for (const std::uint32_t each : choices) {
    const std::uint32_t choice = each * 2654435761u;  // RapidCheck likes small ones.
    const Bytes bytes{1 + choice % (3 << 20)};
    const bool is_committed = choice % 5 != 0;
    switch (choice % 7) {
      case 0:
      case 1:
        keep(heap.propose(bytes), is_committed);
        break;
      case 2:
        if (const auto range = heap.set_apart(1 + choice % 4)) apart.push_back(*range);
        break;
      case 3:
        if (!apart.empty()) keep(heap.propose_at(apart.back().first.value * block_bytes.value, bytes), is_committed);
        break;
      case 4:
        if (apart.empty()) break;
        heap.end_apart(apart.back());
        apart.pop_back();
        break;
      default:
        if (offsets.empty()) break;
        RC_ASSERT(heap.remove(offsets[choice % offsets.size()]).has_value());
        offsets.erase(offsets.begin() + static_cast<std::ptrdiff_t>(choice % offsets.size()));
    }
    heap.check_invariants();
  }
}

}  // namespace
}  // namespace spillway
