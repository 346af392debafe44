#include "cli/gpu_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "machines/cpu/usable_memory.h"
#include "session/own_process.h"

#ifdef SPILLWAY_HAS_CUDA
#include "machines/cuda/driver.h"
#include "machines/cuda/probe.h"
#endif

namespace spillway {
namespace {

constexpr Nanos kMostForGpu{60'000'000'000};  // A driver that nobody uses may take seconds to start.

// "cuda" is the first one.
Result<int> ordinal_of(std::string_view device) {
  if (device == "cuda" || device == "auto") return 0;
  int ordinal = 0;
  const std::string_view number = device.starts_with("cuda:") ? device.substr(5) : "";
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), ordinal);
  if (error == std::errc{} && end == number.data() + number.size() && ordinal >= 0 && ordinal < 128) return ordinal;
  return fail(Errc::usage,
              fmt::format("--device {}: it is auto, cpu, cuda, or cuda:N with the number of a GPU", device));
}

constexpr int kNoGpu = -1;

#ifdef SPILLWAY_HAS_CUDA
// A driver that finds no GPU, and the one that CUDA's compilers bring for linking.
bool finds_none(const CudaDriver& driver) {
  const CUresult started = driver.cuInit(0);
  return started == CUDA_ERROR_NO_DEVICE || started == CUDA_ERROR_STUB_LIBRARY;
}

// `may_lack`: its ordinal is kNoGpu where there is none.
Result<Gpu> probe(int ordinal, bool may_lack) {
  Gpu gpu;
  const auto path_found = cuda_driver_path();
  if (!path_found && may_lack) gpu.ordinal = kNoGpu;
  if (gpu.ordinal == kNoGpu) return gpu;
  TRY(const std::string path, path_found);
  gpu.ordinal = ordinal;
  if (path.size() >= gpu.driver.size()) return fail(Errc::unavailable, fmt::format("the path {} is too long", path));
  path.copy(gpu.driver.data(), path.size());
  TRY(const CudaDriver driver, load_cuda_driver(path.c_str()));
  if (may_lack && finds_none(driver)) gpu.ordinal = kNoGpu;
  if (gpu.ordinal == kNoGpu) return gpu;
  TRY(const GpuProbe found, probe_gpu(driver, ordinal));
  gpu.name = found.name;
  gpu.cuda_version = found.driver_version;
  gpu.memory = found.memory;
  gpu.free = found.free;
  gpu.to_device = found.to_device;
  gpu.from_device = found.from_device;
  gpu.blocks = found.blocks;
  return gpu;
}
#else
Result<Gpu> probe(int, bool may_lack) {
  Gpu none;
  none.ordinal = kNoGpu;
  if (may_lack) return none;
  return fail(Errc::unavailable,
              "this spillway was built without CUDA's headers: build it with a Python whose PyTorch has CUDA "
              "(-DSPILLWAY_PYTHON=/path/to/python3)");
}
#endif

}  // namespace

Result<std::optional<Gpu>> gpu_of(const std::string& device) {
  if (device == "cpu") return std::nullopt;
  TRY(const int ordinal, ordinal_of(device));
  const auto found = in_own_process<Gpu>(
      {.disk = "the CUDA driver", .limit = kMostForGpu, .if_late = "it was asked for its GPUs; see nvidia-smi"},
      [&] { return probe(ordinal, device == "auto"); });
  if (!found) return fail(found.error().code, fmt::format("--device {}: {}", device, found.error().message));
  return found->ordinal == kNoGpu ? std::nullopt : std::optional(*found);
}

Result<Bytes> default_pinned_memory() {
  TRY(const Bytes free, free_memory());
  return Bytes{free.value / 2};
}

PinnedParts parts_of(Bytes pinned, std::optional<Bytes> host, Bytes block_bytes) {
  constexpr Bytes kMostStaging = 128_MiB;
  constexpr std::uint64_t kLeastStaging = 4;
  const std::uint64_t blocks = pinned.value / block_bytes.value;
  const std::uint64_t staging =
      std::clamp(blocks / 4, std::min(kLeastStaging, blocks), kMostStaging.value / block_bytes.value);
  const Bytes rest = block_bytes * (blocks - staging);
  return {.host = host ? std::min(*host, rest) : rest, .staging = block_bytes * staging};
}

Result<BlockCost> block_of(const Gpu& gpu, const std::optional<std::string>& block_size, Bytes device) {
  Bytes bytes = block_size_for(gpu.blocks, gpu.to_device, device);
  if (block_size) {
    const Result<Bytes> wanted = parse_bytes(*block_size);
    if (!wanted || std::ranges::find(kBlockSizes, *wanted) == kBlockSizes.end())
      return fail(Errc::usage, fmt::format("--block-size {}: blocks have 2MiB, 4MiB, 8MiB, 16MiB or 32MiB; leave it "
                                           "out to use what suits the GPU",
                                           *block_size));
    bytes = *wanted;
  }
  const auto found = std::ranges::find(gpu.blocks, bytes, &BlockCost::bytes);
  CHECK(found != gpu.blocks.end());
  return *found;
}

}  // namespace spillway
