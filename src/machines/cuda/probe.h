#pragma once

#include <array>

#include "base/result.h"
#include "base/units.h"
#include "machines/cuda/driver.h"
#include "memory/block_size.h"

namespace spillway {

// A GPU as it is found. Plain bytes, so that a process of its own can tell them.
struct GpuProbe {
  std::array<char, 128> name{};  // "NVIDIA H200", ended by a zero
  int driver_version = 0;        // the newest CUDA that the driver knows: 12080 is 12.8
  Bytes memory, free;
  // Of pinned memory, blocks, while the other way is as busy.
  BytesPerSecond to_device, from_device;
  std::array<BlockCost, kBlockSizes.size()> blocks{};  // by size
};

// Starts CUDA. Takes part of a second, 160 MiB of the GPU and as much pinned memory; all is given back. The error says
// what is missing.
Result<GpuProbe> probe_gpu(const CudaDriver& driver, int ordinal);

}  // namespace spillway
