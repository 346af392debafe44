// What it costs a launch to find all its blocks there: GatedLaunches before and after it, of tensors of several sizes,
// over a driver without a GPU. With the shim's own time (launch_cost) that is all that a launch pays.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "base/check.h"
#include "hook/cuda/gated_launches.h"
#include "machines/cuda/cuda_device.h"
#include "runtime/pager.h"

namespace {

using namespace spillway;

constexpr int kCalls = 20'000, kRounds = 9;

double nanoseconds(GatedLaunches& launches, const CudaLaunch& launch) {
  double least = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) {
      CHECK(launches.before(launch));
      launches.after(launch, 0);
    }
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
    least = std::min(least, taken.count() / kCalls);
  }
  return least;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    fmt::print(stderr, "usage: gate_cost DRIVER    (libstrict_cuda.so)\n");
    return 2;
  }
  ::setenv("STRICT_CUDA_DEVICE_BYTES", "8589934592", 1);
  const auto driver = load_cuda_driver(arguments[1]);
  if (!driver) {
    fmt::print(stderr, "error: {}\n", driver.error().message);
    return 1;
  }
  CudaDeviceConfig wanted;
  wanted.device = Bytes{4_GiB};
  auto device = CudaDevice::open(*driver, wanted);
  if (!device) {
    fmt::print(stderr, "error: {}\n", device.error().message);
    return 1;
  }
  CudaMachine& machine = (*device)->machine();
  auto pager = Pager::start(PagerConfig(), std::move(*device));
  CHECK(pager.has_value());
  GatedLaunches launches(machine);
  fmt::print("{:<40} {:>8}\n", "three tensors of", "a launch");
  for (const Bytes bytes : {Bytes{4096}, Bytes{2_MiB}, Bytes{16_MiB}, Bytes{128_MiB}, Bytes{1_GiB}}) {
    std::vector<void*> tensors;
    std::vector<CudaTouch> touches;
    for (int tensor = 0; tensor < 3; ++tensor) {
      tensors.push_back(*(*pager)->allocate(bytes.value));
      const CudaRange range = launches.range_of(tensors.back(), bytes);
      touches.push_back({.address = range.begin, .range = range.id});
    }
    CudaLaunch launch;
    launch.touches = touches;
    fmt::print("{:<40} {:>5.0f} ns\n", fmt::format("{} MiB", static_cast<double>(bytes.value) / 1048576),
               nanoseconds(launches, launch));
    for (void* const tensor : tensors) (*pager)->free(tensor);
  }
  return 0;
}
