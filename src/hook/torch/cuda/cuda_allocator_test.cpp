#include "hook/torch/cuda/cuda_allocator.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "hook/torch/cuda/cuda_allocator_rig.h"

namespace spillway {
namespace {

TEST_F(CudaAllocatorTest, GivesManagedMemoryForTheCurrentStream) {
  now.stream = stream_of(7);
  c10::DataPtr data = allocator.allocate(1000);
  ASSERT_EQ(tensors.made.size(), 1u);
  EXPECT_EQ(tensors.made[0], std::pair(data.get(), stream_of(7)));
  EXPECT_EQ(data.get_context(), data.get());
  EXPECT_EQ(data.get_deleter(), allocator.raw_deleter());
  EXPECT_EQ(data.device(), c10::Device(c10::DeviceType::CUDA, 0));
  EXPECT_TRUE(allocator.is_simple_data_ptr(data));
  EXPECT_EQ(allocated(), 1024);
  void* memory = data.get();
  data.clear();
  EXPECT_EQ(tensors.freed, std::vector{memory});
  EXPECT_EQ(allocated(), 0);
  EXPECT_TRUE(native.made.empty() && native.deleted.empty() && native.raw_deleted.empty());
}

TEST_F(CudaAllocatorTest, GivesNothingForNoBytes) {
  const c10::DataPtr data = allocator.allocate(0);
  EXPECT_EQ(data.get(), nullptr);
  EXPECT_EQ(data.get_deleter(), allocator.raw_deleter());
  EXPECT_EQ(allocator.raw_alloc(0), nullptr);
  EXPECT_EQ(allocator.raw_alloc_with_stream(0, nullptr), nullptr);
  allocator.raw_delete(nullptr);
  EXPECT_TRUE(tensors.made.empty() && native.made.empty() && native.raw_deleted.empty());
}

TEST_F(CudaAllocatorTest, GivesRawMemoryOfTheStreamThatIsNamed) {
  void* first = allocator.raw_alloc(10);
  void* second = allocator.raw_alloc_with_stream(20, stream_of(9));
  EXPECT_EQ(tensors.made[0].second, stream_of(1));
  EXPECT_EQ(tensors.made[1].second, stream_of(9));
  allocator.raw_delete(second);
  allocator.raw_delete(first);
  EXPECT_EQ(tensors.freed, (std::vector{second, first}));
  void* third = allocator.raw_allocate(30);  // as Thrust asks
  allocator.raw_deallocate(third);
  EXPECT_EQ(tensors.freed.back(), third);
}

TEST_F(CudaAllocatorTest, LeavesOtherDevicesToTheNativeAllocator) {
  now.device = 1;
  c10::DataPtr data = allocator.allocate(1000);
  EXPECT_FALSE(is_managed(data));
  EXPECT_EQ(data.get_deleter(), allocator.raw_deleter());
  EXPECT_EQ(native.made, std::vector<std::size_t>{1000});
  void* memory = data.get();
  data.clear();
  EXPECT_EQ(native.deleted, std::vector{memory});
  allocator.raw_delete(allocator.raw_alloc(5));
  allocator.raw_delete(allocator.raw_alloc_with_stream(6, stream_of(1)));
  EXPECT_EQ(native.made, (std::vector<std::size_t>{1000, 5, 6}));
  EXPECT_EQ(native.raw_deleted.size(), 2u);
  EXPECT_TRUE(tensors.made.empty());
}

TEST_F(CudaAllocatorTest, LeavesToAPoolWhatItsFilterWants) {
  allocator.beginAllocateToPool(0, {0, 3}, [](cudaStream_t stream) { return stream == stream_of(2); });
  allocator.beginAllocateToPool(1, {0, 4}, [](cudaStream_t) { return true; });
  EXPECT_TRUE(is_managed(allocator.allocate(8)));
  now.stream = stream_of(2);
  EXPECT_FALSE(is_managed(allocator.allocate(8)));
  EXPECT_FALSE(tensors.contains(allocator.raw_alloc_with_stream(8, stream_of(2))));
  EXPECT_TRUE(tensors.contains(allocator.raw_alloc_with_stream(8, stream_of(3))));
  EXPECT_ANY_THROW(allocator.beginAllocateToPool(0, {0, 3}, [](cudaStream_t) { return true; }));  // the native one's
  allocator.endAllocateToPool(0, {0, 3});
  EXPECT_TRUE(is_managed(allocator.allocate(8)));
  allocator.endAllocateToPool(1, {0, 4});
  EXPECT_ANY_THROW(allocator.endAllocateToPool(0, {0, 3}));
}

TEST_F(CudaAllocatorTest, GivesACheckpointsDataTheDeleterOfAll) {
  const auto delta = allocator.setCheckpointPoolState(0, nullptr);
  ASSERT_EQ(delta.dataptrs_allocd.size(), 1u);
  EXPECT_EQ(delta.dataptrs_allocd[0].get_deleter(), allocator.raw_deleter());
}

TEST_F(CudaAllocatorTest, LeavesAllToTheNativeAllocatorWhileThatIsDisabled) {
  c10::DataPtr before = allocator.allocate(8);
  now.device = 1;
  c10::DataPtr cached = allocator.allocate(8);
  now.device = 0;
  allocator.enable(false);
  c10::DataPtr uncached = allocator.allocate(8);
  EXPECT_FALSE(is_managed(uncached));
  EXPECT_EQ(uncached.get_deleter(), allocator.raw_deleter());
  EXPECT_EQ(allocator.allocate(0).get_deleter(), allocator.raw_deleter());
  before.clear();
  cached.clear();
  allocator.enable(true);
  uncached.clear();
  EXPECT_EQ(tensors.freed.size(), 1u);
  EXPECT_EQ(native.deleted.size(), 1u);
  EXPECT_EQ(native.uncached_deleted, 1u);
  EXPECT_TRUE(is_managed(allocator.allocate(8)));
}

TEST(CudaAllocatorWithoutCaching, ManagesTensorsAllTheSame) {
  ASSERT_EQ(::setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", 1), 0);
  FakeNative native;
  native.enabled = false;
  FakeDeviceTensors tensors;
  CudaAllocator allocator(native, tensors, kCallsWithoutGpu);
  ::unsetenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
  now = {};
  EXPECT_TRUE(tensors.contains(allocator.allocate(8).get()));
  now.device = 1;
  c10::DataPtr natives = allocator.allocate(8);
  EXPECT_EQ(natives.get_deleter(), allocator.raw_deleter());
  natives.clear();
  EXPECT_EQ(native.uncached_deleted, 1u);
  EXPECT_EQ(tensors.freed.size(), 1u);
}

TEST_F(CudaAllocatorTest, RecordsOtherStreamsOfATensor) {
  const auto stream = [](std::uintptr_t number) { return c10::cuda::getStreamFromExternal(stream_of(number), 0); };
  now.stream = stream_of(5);
  const c10::DataPtr ours = allocator.allocate(8);
  allocator.recordStream(ours, stream(5));
  EXPECT_TRUE(tensors.recorded.empty());
  allocator.recordStream(ours, stream(6));
  EXPECT_EQ(tensors.recorded, (std::vector{std::pair(ours.get(), stream_of(6))}));

  now.device = 1;
  const c10::DataPtr natives = allocator.allocate(8);
  allocator.recordStream(natives, stream(6));
  EXPECT_EQ(native.recorded, (std::vector{std::pair(natives.get(), stream_of(6))}));
  EXPECT_TRUE(native.deleted.empty());
  const c10::DataPtr alias(ours.get(), c10::Device(c10::DeviceType::CUDA, 0));
  allocator.recordStream(alias, stream(7));
  allocator.recordStream(c10::DataPtr{}, stream(7));
  EXPECT_EQ(tensors.recorded.size() + native.recorded.size(), 2u);
}

}  // namespace
}  // namespace spillway
