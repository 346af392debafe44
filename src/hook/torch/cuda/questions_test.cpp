// What CudaAllocator answers about its tensors.
#include <string>
#include <vector>

#include "hook/torch/cuda/cuda_allocator_rig.h"

namespace spillway {
namespace {

using Action = TensorHistory::Action;
using AllocatorQuestions = CudaAllocatorTest;

TEST_F(AllocatorQuestions, TellsOfMemoryThatIsMissing) {
  std::vector<std::size_t> seen;
  allocator.attachOutOfMemoryObserver([&](std::int64_t device, std::size_t bytes, std::size_t total, std::size_t left) {
    seen = {static_cast<std::size_t>(device), bytes, total, left};
  });
  const c10::DataPtr held = allocator.allocate(1000);
  EXPECT_THROW(allocator.allocate(std::size_t{1} << 40), c10::OutOfMemoryError);
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, std::size_t{1} << 40, FakeDeviceTensors::kBudget,
                                            FakeDeviceTensors::kBudget - 1024}));
  EXPECT_EQ(native.attached, 1);
  EXPECT_EQ(allocator.getDeviceStats(0).num_ooms, 1);
  EXPECT_EQ(allocated(), 1024);
  allocator.resetAccumulatedStats(0);
  EXPECT_EQ(allocator.getDeviceStats(0).num_ooms, 0);
}

TEST_F(AllocatorQuestions, ResetsThePeaksOfItsDeviceOnly) {
  allocator.allocate(4096).clear();
  allocator.resetPeakStats(1);
  const auto peak = [&] { return allocator.getDeviceStats(0).allocated_bytes[0].peak; };
  EXPECT_EQ(peak(), 4096);
  allocator.resetPeakStats(0);
  EXPECT_EQ(peak(), 0);
}

TEST_F(AllocatorQuestions, AddsItsStatisticsToTheNativeOnes) {
  native.statistics.born(100);
  const c10::DataPtr data = allocator.allocate(1000);
  EXPECT_EQ(allocated(0), 512 + 1024);
  EXPECT_EQ(allocated(1), 512);
}

TEST_F(AllocatorQuestions, AnswersAboutOneTensor) {
  const c10::DataPtr data = allocator.allocate(1000);
  std::size_t bytes = 0;
  EXPECT_EQ(allocator.getBaseAllocation(data.get(), &bytes), data.get());
  EXPECT_EQ(bytes, 1024u);
  EXPECT_EQ(allocator.getBaseAllocation(data.get(), nullptr), data.get());
  EXPECT_NE(allocator.getBaseAllocation(&bytes, nullptr), nullptr);
  EXPECT_ANY_THROW(allocator.getBaseAllocation(static_cast<char*>(data.get()) + 1, &bytes));
  EXPECT_ANY_THROW(allocator.raw_delete(static_cast<char*>(data.get()) + 1));

  std::size_t largest = 0;
  allocator.cacheInfo(0, &largest);
  EXPECT_EQ(largest, FakeDeviceTensors::kBudget / 4);
  allocator.cacheInfo(1, &largest);
  EXPECT_EQ(largest, 1u);
}

TEST_F(AllocatorQuestions, SharesNoManagedMemoryWithOtherProcesses) {
  const c10::DataPtr data = allocator.allocate(1000);
  try {
    allocator.shareIpcHandle(data.get());
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what_without_backtrace()).find("torch.cuda.MemPool()"), std::string::npos);
  }
  EXPECT_EQ(allocator.shareIpcHandle(&native).handle, "native's");
}

TEST_F(AllocatorQuestions, CopiesManagedMemoryBetweenDevicesByTheirNumbers) {
  const c10::DataPtr data = allocator.allocate(1000);
  void* elsewhere = &native;
  const auto copied = [&](void* to, int to_device, const void* from, int from_device) {
    return allocator.memcpyAsync(to, to_device, from, from_device, 8, nullptr, true) == cudaSuccess;
  };
  EXPECT_TRUE(copied(data.get(), 0, elsewhere, 1));
  EXPECT_TRUE(copied(elsewhere, 1, data.get(), 0));
  EXPECT_FALSE(copied(elsewhere, 1, elsewhere, 0));
  EXPECT_FALSE(copied(data.get(), 0, data.get(), 0));
}

TEST_F(AllocatorQuestions, ShowsItsTensorsInASnapshot) {
  const c10::DataPtr large = allocator.allocate(std::size_t{3} << 20);
  now.stream = stream_of(6);
  const c10::DataPtr data = allocator.allocate(1000);
  native.given_snapshot.segments.emplace_back().address = 1;
  const auto all = allocator.snapshot({0, 0}, true).segments;
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].address, 1u);
  const std::vector segments(all.begin() + 1, all.end());
  EXPECT_EQ(segments[0].address, reinterpret_cast<std::size_t>(large.get()));
  EXPECT_TRUE(segments[0].is_large);
  const auto& small = segments[1];
  EXPECT_EQ(small.address, reinterpret_cast<std::size_t>(data.get()));
  EXPECT_EQ(small.stream, stream_of(6));
  EXPECT_FALSE(small.is_large);
  EXPECT_EQ(small.total_size, 1024u);
  EXPECT_EQ(small.allocated_size, 1024u);
  EXPECT_EQ(small.active_size, 1024u);
  EXPECT_EQ(small.requested_size, 1000u);
  ASSERT_EQ(small.blocks.size(), 1u);
  EXPECT_EQ(small.blocks[0].size, 1024u);
  EXPECT_EQ(small.blocks[0].requested_size, 1000u);
  EXPECT_TRUE(small.blocks[0].allocated && small.blocks[0].active);
  EXPECT_EQ(allocator.snapshot({0, 7}, true).segments.size(), 1u);  // a pool's, which has none of ours
}

struct Place final : c10::GatheredContext {};

TEST_F(AllocatorQuestions, RecordsWhatHappensToItsTensors) {
  allocator.allocate(1).clear();
  allocator.recordHistory(true, [] { return std::shared_ptr<c10::GatheredContext>(new Place); }, 4,
                          TensorHistory::RecordContext::ALL, false, {"free_requested"});
  EXPECT_TRUE(native.records_history);
  allocator.setUserMetadata("a phase");
  std::vector<Action> told;
  allocator.attachAllocatorTraceTracker([&](const auto& entry) { told.push_back(entry.action_); });
  c10::DataPtr data = allocator.allocate(1000);
  EXPECT_NE(allocator.getContextForPointer(data.get()), nullptr);
  EXPECT_EQ(allocator.snapshot({0, 0}, true).segments.at(0).blocks.at(0).context_when_allocated,
            allocator.getContextForPointer(data.get()));
  const auto address = reinterpret_cast<std::size_t>(data.get());
  data.clear();
  EXPECT_THROW(allocator.allocate(std::size_t{1} << 40), c10::OutOfMemoryError);

  const auto ours = allocator.snapshot({0, 0}, true).device_traces.at(0);
  ASSERT_EQ(ours.size(), 3u);
  EXPECT_EQ(ours[0].action_, Action::ALLOC);
  EXPECT_EQ(ours[0].addr_, address);
  EXPECT_EQ(ours[0].size_, 1000u);
  EXPECT_EQ(ours[0].stream_, stream_of(1));
  EXPECT_EQ(ours[0].user_metadata_, "a phase");
  EXPECT_NE(ours[0].context_, nullptr);
  EXPECT_EQ(ours[1].action_, Action::FREE_COMPLETED);
  EXPECT_EQ(ours[2].action_, Action::OOM);
  EXPECT_EQ(ours[2].addr_, FakeDeviceTensors::kBudget);
  EXPECT_LE(ours[0].time_.t_, ours[1].time_.t_);
  EXPECT_EQ(told, (std::vector{Action::ALLOC, Action::FREE_REQUESTED, Action::FREE_COMPLETED, Action::OOM}));
  EXPECT_TRUE(allocator.snapshot({0, 0}, false).device_traces.empty());

  allocator.recordHistory(false, nullptr, 1, TensorHistory::RecordContext::NEVER, false, {});
  EXPECT_TRUE(allocator.snapshot({0, 0}, true).device_traces.at(0).empty());
  EXPECT_FALSE(native.records_history);
}

TEST_F(AllocatorQuestions, KeepsTheNewestEntriesOfItsHistory) {
  allocator.recordHistory(true, nullptr, 2, TensorHistory::RecordContext::NEVER, false, {});
  std::vector<c10::DataPtr> kept;
  for (std::size_t bytes = 1; bytes <= 5; ++bytes) kept.push_back(allocator.allocate(bytes));
  const auto trace = allocator.snapshot({0, 0}, true).device_traces.at(0);
  ASSERT_EQ(trace.size(), 2u);
  EXPECT_EQ(trace[0].size_, 4u);
  EXPECT_EQ(trace[1].size_, 5u);
}

TEST_F(AllocatorQuestions, HasTheNameOfTheNativeAllocator) { EXPECT_EQ(allocator.name(), "native"); }

}  // namespace
}  // namespace spillway
