#include "machines/cuda/device_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "machines/real/clock.h"

namespace spillway {

CUmemAllocationProp DeviceMemory::property() const {
  CUmemAllocationProp property{};
  property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device_};
  return property;
}

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::make(const CudaDriver& driver, CUdevice device,
                                                         std::uint32_t blocks, std::uint32_t most_frames,
                                                         Bytes block_bytes) {
  CHECK(blocks > 0 && most_frames > 0);
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory(driver, device, blocks, most_frames, block_bytes));
  const CUmemAllocationProp property = memory->property();
  std::size_t granularity = 0;
  TRY_VOID(
      driver.check(driver.cuMemGetAllocationGranularity(&granularity, &property, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                   "ask in what parts memory is mapped"));
  if (block_bytes.value % granularity != 0)
    return fail(Errc::unavailable, fmt::format("this GPU maps memory in parts of {}, and blocks are {}",
                                               to_text(Bytes{granularity}), to_text(block_bytes)));
  TRY_VOID(
      driver.check(driver.cuMemAddressReserve(&memory->begin_, block_bytes.value * blocks, block_bytes.value, 0, 0),
                   fmt::format("reserve {} of addresses", to_text(block_bytes * blocks))));
  return memory;
}

DeviceMemory::~DeviceMemory() {
  for (std::uint32_t block = 0; block < frames_.size(); ++block)
    if (frames_[block] != kNone) driver_.cuMemUnmap(address({block}), block_bytes_.value);
  for (const auto handle : handles_) driver_.cuMemRelease(handle);
  if (begin_ != 0) driver_.cuMemAddressFree(begin_, block_bytes_.value * frames_.size());
}

Result<> DeviceMemory::map(BlockId block) {
  CHECK(!is_mapped(block) && free_frames() > 0);
  if (free_.empty()) {
    const CUmemAllocationProp property = this->property();
    CUmemGenericAllocationHandle handle = 0;
    const CUresult made = driver_.cuMemCreate(&handle, block_bytes_.value, &property, 0);
    if (made == CUDA_ERROR_OUT_OF_MEMORY)
      return fail(
          Errc::unavailable,
          fmt::format("the GPU has no more memory after {} of a budget of {}: somebody else uses it, or pools of "
                      "the script's own (CUDA graphs, MemPool); give a smaller --device-memory",
                      to_text(block_bytes_ * handles_.size()), to_text(block_bytes_ * most_frames_)));
    TRY_VOID(driver_.check(made, "make memory"));
    handles_.push_back(handle);
    free_.push_back(static_cast<Frame>(handles_.size() - 1));
  }
  const Nanos begin = now();
  const Frame frame = free_.back();
  TRY_VOID(driver_.check(driver_.cuMemMap(address(block), block_bytes_.value, 0, handles_[frame], 0), "map a block"));
  free_.pop_back();
  frames_[block.value] = frame;
  TRY_VOID(set_access(block, true));
  allowed_.insert(block);
  ++mappings_;
  mapping_ += now() - begin;
  return {};
}

Result<> DeviceMemory::set_access(BlockId block, bool allowed) {
  CUmemAccessDesc access{};
  access.location = property().location;
  access.flags = allowed ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return driver_.check(driver_.cuMemSetAccess(address(block), block_bytes_.value, &access, 1),
                       allowed ? "allow access to a block" : "forbid access to a block");
}

Result<> DeviceMemory::allow(BlockId block) {
  CHECK(is_mapped(block));
  return allowed_.insert(block).second ? set_access(block, true) : Result<>();
}

Result<> DeviceMemory::allow_only(std::span<const BlockId> blocks) {
  for (auto at = allowed_.begin(); at != allowed_.end();) {
    if (std::ranges::binary_search(blocks, *at)) {
      ++at;
      continue;
    }
    TRY_VOID(set_access(*at, false));
    at = allowed_.erase(at);
  }
  for (const BlockId block : blocks) TRY_VOID(allow(block));
  return {};
}

Result<> DeviceMemory::unmap(BlockId block) {
  CHECK(is_mapped(block));
  const Nanos begin = now();
  TRY_VOID(driver_.check(driver_.cuMemUnmap(address(block), block_bytes_.value), "unmap a block"));
  ++mappings_;
  mapping_ += now() - begin;
  free_.push_back(frames_[block.value]);
  frames_[block.value] = kNone;
  allowed_.erase(block);
  return {};
}

}  // namespace spillway
