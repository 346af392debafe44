#pragma once

#include <functional>
#include <memory>
#include <string>

#include "machines/cuda/cuda_machine.h"
#include "machines/cuda/driver.h"
#include "machines/real/real_device.h"

namespace spillway {

// `host` is what may be pinned for blocks; zero: nothing, all that leaves goes to the SSD.
struct CudaDeviceConfig : RealDeviceConfig {
  int ordinal = 0;
  std::uint32_t staging_blocks = 64;  // pinned besides, for what goes to the SSD and comes from there
  bool strict = false;                // Note [Strict runs]
  std::function<void(const std::string&)> on_shortage = {};                          // see CudaMachineOptions
  std::string teardown_path = {};                                                    // see CpuDeviceConfig
  std::function<std::unique_ptr<BlockIo>(std::unique_ptr<BlockIo>)> around_io = {};  // see CpuMachineOptions
};

// A GPU as a run has it.
class CudaDevice final : public RealDevice {
 public:
  // The driver's calls go past whoever watches launches. Errors name the budget that cannot be had, and the remedy.
  static Result<std::unique_ptr<CudaDevice>> open(const CudaDriver& driver, const CudaDeviceConfig& config);

  CudaMachine& machine() override { return *machine_; }
  const CudaMachine& machine() const override { return *machine_; }
  const std::string& name() const { return name_; }  // "NVIDIA H200"

 private:
  CudaDevice(const CudaDriver& driver, const CudaDeviceConfig& config, std::unique_ptr<SpillFile> file)
      : RealDevice(config, std::move(file)), driver_(driver) {}

  CudaDriver driver_;
  std::string name_;
  std::unique_ptr<CudaMachine> machine_;
};

}  // namespace spillway
