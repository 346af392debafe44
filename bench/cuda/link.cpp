// PCIe, pinned memory, and blocks that stay on the host but are mapped on the GPU.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <vector>

#include "load.h"
#include "parts.h"
#include "virtual_memory.h"

namespace spillway::probe {
namespace {

double gigabytes_per_second(std::size_t bytes, double seconds) { return static_cast<double>(bytes) / seconds / 1e9; }

std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;)
    if (word == "MemAvailable:") {
      std::size_t kib = 0;
      file >> kib;
      return kib << 10;
    }
  return 0;
}

}  // namespace

void card(const Context& context) {
  const Gpu& gpu = context.gpu;
  std::size_t bytes = 0;
  gpu.check(gpu->cuDeviceTotalMem(&bytes, gpu.device()), "tell the GPU's memory");
  tell("name", gpu.name());
  tell("CUDA version of the driver", gpu.driver_version());
  tell("memory", fmt::format("{} MiB", bytes / kMiB));
  tell("host memory available", fmt::format("{} MiB", available_memory() / kMiB));
  using Attribute = std::pair<const char*, CUdevice_attribute>;
  for (const auto& [what, attribute] :
       {Attribute{"multiprocessors", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
        {"copy engines", CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
        {"compute capability, major", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
        {"compute capability, minor", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
        {"virtual memory management", CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
        {"NUMA node of the host beside it", CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID},
        {"... of host memory by NUMA node", CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
        {"... of host memory", CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED}})
    tell(what, fmt::format("{}", gpu.attribute(attribute)));
}

void link(const Context& context) {
  const Gpu& gpu = context.gpu;
  const CUstream in = gpu.stream(), out = gpu.stream(), busy = gpu.stream();
  constexpr std::size_t kMost = 128 * kMiB;
  auto* const here = static_cast<char*>(gpu.pinned(2 * kMost));
  const CUdeviceptr there = gpu.memory(2 * kMost), word = gpu.memory(4);
  const auto warm = Clock::now();  // The link rests until it is used.
  while (seconds_since(warm) < 0.5) {
    gpu.check(gpu->cuMemcpyHtoDAsync(there, here, kMost, in), "copy to the GPU");
    gpu.wait(in);
  }
  for (const bool beside : {false, true}) {
    std::optional<Load> load;
    if (beside)
      load.emplace(gpu, [&] {
        gpu.burn(busy, word, 1'000'000);
        gpu.wait(busy);
      });
    for (const std::size_t mib : {2, 8, 32, 128})
      for (const auto& [goes_in, goes_out, way] :
           {std::tuple{true, false, "to the GPU"}, std::tuple{false, true, "from the GPU"},
            std::tuple{true, true, "both ways, each"}}) {
        const std::size_t bytes = mib * kMiB, copies = std::max<std::size_t>(4, 256 / mib);
        Samples rate;
        const auto began = Clock::now();
        while (rate.count() < 5 || seconds_since(began) < 0.4) {
          const auto begin = Clock::now();
          for (std::size_t copy = 0; copy < copies; ++copy) {
            if (goes_in) gpu.check(gpu->cuMemcpyHtoDAsync(there, here, bytes, in), "copy to the GPU");
            if (goes_out)
              gpu.check(gpu->cuMemcpyDtoHAsync(here + kMost, there + kMost, bytes, out), "copy from the GPU");
          }
          gpu.wait(in);
          gpu.wait(out);
          rate.add(gigabytes_per_second(bytes * copies, seconds_since(begin)));
        }
        tell(fmt::format("copies of {} MiB {}{}", mib, way, beside ? ", beside arithmetic" : ""), "GB/s", rate);
      }
  }
}

void pinning(const Context& context) {
  const Gpu& gpu = context.gpu;
  const std::size_t all = std::min<std::size_t>(8'192, available_memory() / 4 / kMiB) / 16 * 16 * kMiB;
  tell("memory to pin", fmt::format("{} MiB", all / kMiB));
  const CUstream stream = gpu.stream();
  for (const std::size_t threads : {1, 4, 16}) {
    void* const memory = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return tell("pinning", "there is not enough memory");
    // What a page of new memory costs is no matter of pinning.
    if (::madvise(memory, all, MADV_POPULATE_WRITE) != 0) return tell("pinning", "the memory cannot be populated");
    const std::size_t part = all / threads;
    Samples rate, launch;
    const auto begin = Clock::now();
    {
      std::atomic<bool> over{false};
      std::thread launching([&] {
        gpu.use_in_this_thread();
        while (!over) {
          launch.add(microseconds([&] { gpu.nothing(stream); }));
          gpu.wait(stream);
        }
      });
      std::vector<std::thread> pinners;
      for (std::size_t thread = 0; thread < threads; ++thread)
        pinners.emplace_back([&, thread] {
          gpu.use_in_this_thread();
          gpu.check(gpu->cuMemHostRegister(static_cast<char*>(memory) + thread * part, part, 0), "pin memory");
        });
      for (std::thread& pinner : pinners) pinner.join();
      rate.add(gigabytes_per_second(all, seconds_since(begin)));
      over = true;
      launching.join();
    }
    tell(fmt::format("pinning with {} threads", threads), "GB/s", rate);
    tell(fmt::format("launch while {} threads pin", threads), "us", launch);
    for (std::size_t thread = 0; thread < threads; ++thread)
      gpu.check(gpu->cuMemHostUnregister(static_cast<char*>(memory) + thread * part), "unpin memory");
    ::munmap(memory, all);
  }
}

namespace {

// A block that is evicted to host memory and stays mapped at its address: a miss would be slow, not wrong.
void host_mapped(const Gpu& gpu, CUmemLocation where) {
  constexpr std::size_t kBytes = 32 * kMiB;
  constexpr std::uint32_t kWords = kBytes / 4;
  const CUstream stream = gpu.stream();
  const CUdeviceptr result = gpu.memory(4), copy = gpu.memory(kBytes);
  const auto sum_of = [&](CUdeviceptr from, std::uint32_t words) { return gpu.sum_of(stream, from, words); };
  // The address is that of device memory first, between two neighbours of the same kind.
  const Chunks device(gpu, kBytes, 3, on(gpu)), host(gpu, kBytes, 1, where);
  tell("create a chunk of 32 MiB in host memory", "us", host.create());
  for (std::size_t index = 0; index < 3; ++index) device.map(index);
  device.let_gpu_access(device.at(), device.size());
  const CUdeviceptr at = device.at(1);
  gpu.store(stream, at, kWords, 7);
  gpu.wait(stream);
  host.map(0);
  host.let_gpu_access(host.at(), kBytes);
  tell("host memory mapped on the GPU", "works");
  Samples out, in, swap, reads, writes;
  const auto copied = [&](CUdeviceptr to, CUdeviceptr from) {
    const auto begin = Clock::now();
    gpu.check(gpu->cuMemcpyDtoDAsync(to, from, kBytes, stream), "copy between GPU and host chunk");
    gpu.wait(stream);
    return gigabytes_per_second(kBytes, seconds_since(begin));
  };
  for (int round = 0; round < 10; ++round) out.add(copied(host.at(), at));
  for (int round = 0; round < 10; ++round) in.add(copied(copy, host.at()));
  tell("copies from the GPU to the chunk", "GB/s", out);
  tell("copies from the chunk to the GPU", "GB/s", in);
  host.unmap(host.at(), kBytes);
  swap.add(microseconds([&] {
    device.unmap(at, kBytes);
    host.map_at(at, 0);
    host.let_gpu_access(at, kBytes);
  }));
  tell("put it in place of device memory, at its address", "us", swap);
  tell("what a kernel then reads there", sum_of(at, kWords) == 7 * kWords ? "what was written" : "other bytes");
  for (int round = 0; round < 10; ++round) {
    auto begin = Clock::now();
    gpu.store(stream, at, kWords, 3);
    gpu.wait(stream);
    writes.add(gigabytes_per_second(kBytes, seconds_since(begin)));
    begin = Clock::now();
    gpu.sum(stream, at, kWords, result);
    gpu.wait(stream);
    reads.add(gigabytes_per_second(kBytes, seconds_since(begin)));
  }
  tell("kernels that write it", "GB/s", writes);
  tell("kernels that read it", "GB/s", reads);
  gpu.store(stream, device.at(0), kWords, 1);
  gpu.store(stream, at, 1, 0);
  gpu.sum(stream, device.at(0), kWords, at);
  const std::uint32_t counted = sum_of(at, 1);
  tell("atomic additions to it", counted == kWords ? "exact" : fmt::format("{} of {}", counted, kWords));
  // What a script's own calls may do with it; the driver may want the CPU to touch it.
  auto* const pinned = static_cast<std::uint32_t*>(gpu.pinned(kBytes));
  gpu.check(gpu->cuMemcpyDtoHAsync(pinned, at, kBytes, stream), "copy the chunk to pinned memory");
  gpu.wait(stream);
  tell("a copy of it to pinned memory", pinned[1] == 3 ? "works" : "has other bytes");
  gpu.check(gpu->cuMemsetD8Async(at, 0, kBytes, stream), "set the chunk's bytes");
  gpu.wait(stream);
  tell("a memset of it", sum_of(at, kWords) == 0 ? "works" : "leaves other bytes");
  CUmemAccessDesc access{};
  access.location = where;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (const CUresult allowed = gpu->cuMemSetAccess(at, kBytes, &access, 1); allowed != CUDA_SUCCESS)
    return tell("access by the CPU", "refused: " + gpu->text_of(allowed));
  auto* const words = reinterpret_cast<volatile std::uint32_t*>(at);
  words[5] = 9;
  tell("access by the CPU", words[5] == 9 && sum_of(at, kWords) == 9 ? "works" : "is not seen by kernels");
}

}  // namespace

void host_numa_mapped(const Context& context) {
  const int node = context.gpu.attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
  host_mapped(context.gpu, {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = std::max(0, node)});
}

void host_mapped(const Context& context) { host_mapped(context.gpu, {.type = CU_MEM_LOCATION_TYPE_HOST, .id = 0}); }

}  // namespace spillway::probe
