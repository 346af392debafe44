#include "machines/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "memory/pieces.h"

namespace spillway {
namespace {

// Of addresses there are plenty (a GPU has 2^47 bytes of them), and each block costs some 200 bytes of tables,
// and 8 for each stream.
constexpr std::uint64_t kAddressesForEach = 2;

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(const CudaDriver& driver, const CudaDeviceConfig& config) {
  TRY_VOID(driver.check(driver.cuInit(0), "start CUDA"));
  CUdevice device = 0;
  TRY_VOID(driver.check(driver.cuDeviceGet(&device, config.ordinal), fmt::format("open device {}", config.ordinal)));
  std::array<char, 128> name{};
  TRY_VOID(driver.check(driver.cuDeviceGetName(name.data(), static_cast<int>(name.size()), device), "ask its name"));
  std::size_t memory = 0;
  TRY_VOID(driver.check(driver.cuDeviceTotalMem(&memory, device), "ask how much memory there is"));
  if (config.device.value > memory)
    return fail(Errc::usage, fmt::format("--device-memory {} is more than the {} that {} has; give less",
                                         to_text(config.device), to_text(Bytes{memory}), name.data()));
  const auto frames = static_cast<std::uint32_t>(config.device.value / config.block_bytes.value);
  if (frames == 0)
    return fail(Errc::usage, fmt::format("--device-memory {} is less than one block of {}; give more",
                                         to_text(config.device), to_text(config.block_bytes)));
  TRY(auto file, open_file(config));
  std::unique_ptr<CudaDevice> opened(new CudaDevice(driver, config, std::move(file)));
  opened->name_ = name.data();
  const auto host = static_cast<std::uint32_t>(config.host.value / config.block_bytes.value);
  const std::uint64_t all = std::uint64_t{frames} + host + opened->file().capacity_slots();
  const auto teardown = open_teardown(config.teardown_path);
  TRY(opened->machine_,
      CudaMachine::make(
          opened->driver_,
          {.device = config.ordinal,
           .device_frames = frames,
           .host_slots = host,
           .range_blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(kAddressesForEach * all, kMostBlocks)),
           .block_bytes = config.block_bytes,
           .staging_slots = config.staging_blocks,
           .strict = config.strict,
           .disk_waits = config.disk_waits,
           .on_shortage = config.on_shortage,
           .closed_after_file = teardown ? teardown->get() : -1,
           .around_io = config.around_io},
          opened->file()));
  return opened;
}

}  // namespace spillway
