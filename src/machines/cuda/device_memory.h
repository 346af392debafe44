#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "machines/cuda/driver.h"

namespace spillway {

// One range of a GPU's addresses, block beside block, and the physical memory that blocks get: frames of one block
// each, made when they are needed first and kept, mapped to one block at a time. Used by one thread at a time.
class DeviceMemory {
 public:
  using Frame = std::uint32_t;

  // `most_frames`: the budget. The driver outlives it. Errc::unavailable if the addresses cannot be had, or blocks are
  // no multiple of what the GPU maps.
  static Result<std::unique_ptr<DeviceMemory>> make(const CudaDriver& driver, CUdevice device, std::uint32_t blocks,
                                                    std::uint32_t most_frames, Bytes block_bytes);
  // Nothing may use it any more.
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  CUdeviceptr begin() const { return begin_; }
  Bytes block_bytes() const { return block_bytes_; }
  CUdeviceptr address(BlockId block) const { return begin_ + block.value * block_bytes_.value; }

  std::uint32_t free_frames() const { return most_frames_ - frames_in_use(); }
  std::uint32_t frames_in_use() const { return static_cast<std::uint32_t>(handles_.size() - free_.size()); }
  // Gives the block a free frame: it can be used from now on. The contents are whatever they were.
  Result<> map(BlockId block);
  // Nobody uses it, and nothing enqueued will.
  Result<> unmap(BlockId block);
  // Lets the block be used until allow_only(); one that is mapped can be from the start. For who enqueues what uses it.
  Result<> allow(BlockId block);
  // No other block can be used, though it stays mapped: whoever touches it faults. All are mapped, in ascending order;
  // nothing enqueued uses any other.
  Result<> allow_only(std::span<const BlockId> blocks);
  bool is_mapped(BlockId block) const { return frames_[block.value] != kNone; }
  // Blocks that were mapped or unmapped so far, and the time that this took.
  std::uint64_t mappings() const { return mappings_; }
  Nanos mapping() const { return mapping_; }

 private:
  static constexpr Frame kNone = UINT32_MAX;

  DeviceMemory(const CudaDriver& driver, CUdevice device, std::uint32_t blocks, std::uint32_t most_frames,
               Bytes block_bytes)
      : driver_(driver),
        device_(device),
        most_frames_(most_frames),
        block_bytes_(block_bytes),
        frames_(blocks, kNone) {}
  CUmemAllocationProp property() const;
  Result<> set_access(BlockId block, bool allowed);

  const CudaDriver& driver_;
  CUdevice device_;
  std::uint32_t most_frames_;
  Bytes block_bytes_;
  CUdeviceptr begin_ = 0;
  std::vector<CUmemGenericAllocationHandle> handles_;  // by frame
  std::vector<Frame> free_;
  std::vector<Frame> frames_;  // by block
  std::set<BlockId> allowed_;
  std::uint64_t mappings_ = 0;
  Nanos mapping_;
};

}  // namespace spillway
