#include "gpu.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels.ptx.h"

namespace spillway::probe {
namespace {

void print(const nlohmann::json& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

}  // namespace

void end(int status, const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  if (status != kSkipped) tell("failed", why);
  std::fflush(nullptr);
  std::_Exit(status);
}

std::unique_ptr<Gpu> Gpu::open() {
  auto driver = load_cuda_driver();
  if (!driver) end(kSkipped, "skipped: " + driver.error().message);
  std::unique_ptr<Gpu> made(new Gpu(*driver));
  Gpu& gpu = *made;
  const CUresult started = gpu->cuInit(0);
  if (started == CUDA_ERROR_NO_DEVICE || started == CUDA_ERROR_STUB_LIBRARY)
    end(kSkipped, "skipped: the CUDA driver finds no GPU (" + gpu->text_of(started) + ")");
  gpu.check(started, "start the CUDA driver");
  gpu.check(gpu->cuDeviceGet(&gpu.device_, 0), "find the first GPU");
  gpu.check(gpu->cuDevicePrimaryCtxRetain(&gpu.context_, gpu.device_), "start the GPU's context");
  gpu.use_in_this_thread();
  gpu.multiprocessors_ = static_cast<unsigned>(gpu.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  return made;
}

int Gpu::attribute(CUdevice_attribute attribute) const {
  int value = 0;
  check(driver_.cuDeviceGetAttribute(&value, attribute, device_), "tell an attribute of the GPU");
  return value;
}

void Gpu::use_in_this_thread() const { check(driver_.cuCtxSetCurrent(context_), "use the GPU's context"); }

CUmodule Gpu::module() const {
  CUmodule module = nullptr;
  check(driver_.cuModuleLoadData(&module, kKernels), "compile the probe's kernels");
  return module;
}

void Gpu::check(CUresult result, std::string_view what) const {
  if (result != CUDA_SUCCESS) end(1, fmt::format("failed to {}: {}", what, driver_.text_of(result)));
}

std::string Gpu::name() const {
  char text[128] = {};
  check(driver_.cuDeviceGetName(text, sizeof text - 1, device_), "name the GPU");
  return text;
}

std::string Gpu::driver_version() const {
  int version = 0;
  check(driver_.cuDriverGetVersion(&version), "tell the driver's version");
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

CUstream Gpu::stream() const {
  CUstream stream = nullptr;
  check(driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "make a stream");
  return stream;
}

CUdeviceptr Gpu::memory(std::size_t bytes) const {
  CUdeviceptr at = 0;
  check(driver_.cuMemAlloc(&at, bytes), fmt::format("get {} MiB of GPU memory", bytes >> 20));
  return at;
}

void* Gpu::pinned(std::size_t bytes) const {
  void* at = nullptr;
  check(driver_.cuMemAllocHost(&at, bytes), fmt::format("get {} MiB of pinned memory", bytes >> 20));
  return at;
}

void Gpu::wait(CUstream stream) const { check(driver_.cuStreamSynchronize(stream), "wait for a stream"); }

void Gpu::launch(CUfunction Kernels::* kernel, unsigned blocks, unsigned threads, CUstream stream,
                 void** arguments) const {
  std::call_once(loaded_, [&] {
    const CUmodule all = module();
    for (auto [function, name] : {std::pair{&Kernels::nothing, "nothing"}, std::pair{&Kernels::spin, "spin"},
                                  std::pair{&Kernels::burn, "burn"}, std::pair{&Kernels::store, "store"},
                                  std::pair{&Kernels::store_for, "store_for"}, std::pair{&Kernels::sum, "sum"}})
      check(driver_.cuModuleGetFunction(&(kernels_.*function), all, name), std::string("find the kernel ") + name);
  });
  check(driver_.cuLaunchKernel(kernels_.*kernel, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr),
        "launch a kernel");
}

void Gpu::nothing(CUstream stream) const { launch(&Kernels::nothing, 1, 1, stream, nullptr); }

void Gpu::spin(CUstream stream, std::uint64_t nanoseconds) const {
  void* arguments[] = {&nanoseconds};
  launch(&Kernels::spin, 1, 1, stream, arguments);
}

void Gpu::burn(CUstream stream, CUdeviceptr out, std::uint32_t steps) const {
  void* arguments[] = {&out, &steps};
  launch(&Kernels::burn, multiprocessors_ * 4, 256, stream, arguments);
}

void Gpu::store(CUstream stream, CUdeviceptr at, std::uint32_t words, std::uint32_t value) const {
  void* arguments[] = {&at, &words, &value};
  launch(&Kernels::store, multiprocessors_ * 4, 256, stream, arguments);
}

void Gpu::store_for(CUstream stream, CUdeviceptr at, std::uint32_t words, std::uint32_t value,
                    std::uint64_t nanoseconds) const {
  void* arguments[] = {&at, &words, &value, &nanoseconds};
  launch(&Kernels::store_for, multiprocessors_, 256, stream, arguments);
}

void Gpu::sum(CUstream stream, CUdeviceptr from, std::uint32_t words, CUdeviceptr to) const {
  void* arguments[] = {&from, &words, &to};
  launch(&Kernels::sum, multiprocessors_ * 4, 256, stream, arguments);
}

std::uint32_t Gpu::sum_of(CUstream stream, CUdeviceptr from, std::uint32_t words) const {
  const CUdeviceptr result = memory(sizeof(std::uint32_t));
  std::uint32_t sum_of_all = 0;
  check(driver_.cuMemsetD8Async(result, 0, sizeof sum_of_all, stream), "clear a word");
  sum(stream, from, words, result);
  check(driver_.cuMemcpyDtoHAsync(&sum_of_all, result, sizeof sum_of_all, stream), "copy a word");
  wait(stream);
  return sum_of_all;
}

void tell(std::string_view what, std::string_view unit, const Samples& samples) {
  print({{"what", what},
         {"unit", unit},
         {"count", samples.count()},
         {"median", samples.median()},
         {"p99", samples.p99()}});
}

void tell(std::string_view what, std::string_view fact) { print({{"what", what}, {"fact", fact}}); }

}  // namespace spillway::probe
