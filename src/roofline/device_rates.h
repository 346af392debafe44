#pragma once

#include <cstdint>

#include "base/units.h"

namespace spillway {

// What a device can do at best, as its vendor says: what times of kernels are estimated from that nobody has run.
struct DeviceRates {
  std::uint64_t gflops = 0;  // billions of floating-point operations per second (FP32); 0: not known
  // The same of convolutions, which PyTorch gives to tensor cores where there are some (TF32); 0: as `gflops`.
  std::uint64_t tensor_gflops = 0;
  BytesPerSecond bandwidth{};  // of its own memory; 0: not known
  Nanos launch{};              // that each kernel takes besides

  bool are_known() const { return gflops != 0 && bandwidth.value != 0; }
};

}  // namespace spillway
