#include "machines/cuda/probe.h"

#include <fmt/format.h>

#include <vector>

#include "base/median.h"
#include "machines/cuda/copy_stream.h"
#include "machines/cuda/device_memory.h"
#include "machines/cuda/pinned_memory.h"
#include "machines/real/clock.h"
#include "memory/pieces.h"

namespace spillway {
namespace {

constexpr std::uint32_t kBlocks = 32;  // each way
constexpr int kRounds = 8;
constexpr int kFaults = 5;  // of each size

struct Links {
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<CopyStream> up, down;
  std::vector<std::byte*> pinned;
};

// When each way is done.
struct Ended {
  Nanos up, down;
};
Result<Ended> wait_for(const Links& links, std::uint64_t up, std::uint64_t down) {
  Ended ended;
  while (ended.up == Nanos{} || ended.down == Nanos{}) {
    TRY_VOID(links.up->poll());
    TRY_VOID(links.down->poll());
    if (ended.up == Nanos{} && links.up->done() >= up) ended.up = now();
    if (ended.down == Nanos{} && links.down->done() >= down) ended.down = now();
  }
  return ended;
}

BytesPerSecond rate_of(Bytes bytes, Nanos time) {
  return {static_cast<std::uint64_t>(static_cast<double>(bytes.value) / std::max(seconds(time), 1e-9))};
}

Result<> measure_rates(const Links& links, GpuProbe& probe) {
  std::vector<Nanos> up_times, down_times;
  for (int round = 0; round <= kRounds; ++round) {
    const Nanos begin = now();
    for (std::uint32_t block = 0; block < kBlocks; ++block) {
      TRY_VOID(links.up->copy_to_device(links.memory->address({block}), links.pinned[block], kBlockBytes.value));
      TRY_VOID(links.down->copy_from_device(links.pinned[kBlocks + block], links.memory->address({kBlocks + block}),
                                            kBlockBytes.value));
    }
    TRY(const std::uint64_t up, links.up->mark());
    TRY(const std::uint64_t down, links.down->mark());
    TRY(const Ended ended, wait_for(links, up, down));
    if (round == 0) continue;  // It wakes the link.
    up_times.push_back(ended.up - begin);
    down_times.push_back(ended.down - begin);
  }
  probe.to_device = rate_of(kBlockBytes * kBlocks, median(up_times));
  probe.from_device = rate_of(kBlockBytes * kBlocks, median(down_times));
  return {};
}

Result<BlockCost> measure_block(const CudaDriver& driver, CUdevice device, const Links& links, Bytes bytes,
                                BytesPerSecond to_device) {
  TRY(const auto memory, DeviceMemory::make(driver, device, 1, 1, bytes));
  PinnedMemory pinned(driver, 1, bytes);
  const std::byte* const from = pinned.take();
  if (from == nullptr) return fail(Errc::unavailable, pinned.shortage());
  const BlockId block{0};
  TRY_VOID(memory->map(block));  // Its frame is made once.
  std::vector<Nanos> mappings, faults;
  for (int fault = 0; fault < kFaults; ++fault) {
    TRY_VOID(memory->unmap(block));
    const Nanos begin = now();
    TRY_VOID(memory->map(block));
    mappings.push_back(now() - begin);
    TRY_VOID(links.up->copy_to_device(memory->address(block), from, bytes.value));
    TRY(const std::uint64_t mark, links.up->mark());
    TRY(const Ended ended, wait_for(links, mark, 0));
    faults.push_back(ended.up - begin);
  }
  return BlockCost{.bytes = bytes,
                   .mapping = median(mappings),
                   .fault = std::max(excess(median(faults), transfer_time(bytes, to_device)), Nanos{1000})};
}

}  // namespace

Result<GpuProbe> probe_gpu(const CudaDriver& driver, int ordinal) {
  TRY_VOID(driver.check(driver.cuInit(0), "start CUDA"));
  CUdevice device = 0;
  TRY_VOID(driver.check(driver.cuDeviceGet(&device, ordinal), fmt::format("open cuda:{}", ordinal)));
  GpuProbe probe;
  TRY_VOID(driver.check(driver.cuDeviceGetName(probe.name.data(), static_cast<int>(probe.name.size()) - 1, device),
                        "ask its name"));
  TRY_VOID(driver.check(driver.cuDriverGetVersion(&probe.driver_version), "ask for its version"));
  CUcontext context = nullptr;
  TRY_VOID(driver.check(driver.cuDevicePrimaryCtxRetain(&context, device), "get a context"));
  TRY_VOID(driver.check(driver.cuCtxSetCurrent(context), "use the context"));
  std::size_t free = 0, all = 0;
  TRY_VOID(driver.check(driver.cuMemGetInfo(&free, &all), "ask how much memory is free"));
  probe.free = {free};
  probe.memory = {all};
  Links links;
  TRY(links.memory, DeviceMemory::make(driver, device, 2 * kBlocks, 2 * kBlocks, Bytes{kBlockBytes}));
  TRY(links.up, CopyStream::make(driver));
  TRY(links.down, CopyStream::make(driver));
  PinnedMemory pinned(driver, 2 * kBlocks, kBlockBytes);
  for (std::uint32_t block = 0; block < 2 * kBlocks; ++block) {
    TRY_VOID(links.memory->map({block}));
    links.pinned.push_back(pinned.take());
    if (links.pinned.back() == nullptr) return fail(Errc::unavailable, pinned.shortage());
  }
  TRY_VOID(measure_rates(links, probe));
  for (std::size_t size = 0; size < kBlockSizes.size(); ++size) {
    TRY(probe.blocks[size], measure_block(driver, device, links, kBlockSizes[size], probe.to_device));
  }
  links.up.reset();  // Nothing is copied any more.
  links.down.reset();
  return probe;
}

}  // namespace spillway
