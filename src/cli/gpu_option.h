#pragma once

#include <array>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "memory/block_size.h"

namespace spillway {

// A GPU of this machine, as it was found.
struct Gpu {
  int ordinal = 0;
  std::array<char, 512> driver{};  // the absolute path of its library, ended by a zero like the next
  std::array<char, 128> name{};
  int cuda_version = 0;  // the newest that the driver knows: 12080 is 12.8
  Bytes memory, free;
  BytesPerSecond to_device, from_device;               // while both ways are busy
  std::array<BlockCost, kBlockSizes.size()> blocks{};  // by size
};

// The GPU that `--device` names: "cuda", "cuda:1". Nothing for "cpu", and for "auto" where there is none. CUDA runs in
// a process of its own for that, part of a second.
Result<std::optional<Gpu>> gpu_of(const std::string& device);

// Of host memory, how much a run on a GPU pins where nobody says it: half of what is free.
Result<Bytes> default_pinned_memory();

// What `--pinned-memory` is split into: for tensors, and for what is on its way to the SSD and from there.
struct PinnedParts {
  Bytes host, staging;
};
PinnedParts parts_of(Bytes pinned, std::optional<Bytes> host, Bytes block_bytes);

// What `--block-size` says, which is one of kBlockSizes; without it what suits the GPU.
Result<BlockCost> block_of(const Gpu& gpu, const std::optional<std::string>& block_size, Bytes device);

}  // namespace spillway
