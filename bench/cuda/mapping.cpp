// Is mapping too slow, does it block launches? Decides the size of blocks.
#include <fmt/format.h>

#include <optional>

#include "load.h"
#include "parts.h"
#include "virtual_memory.h"

namespace spillway::probe {
namespace {

// One round and another of mapping chunks, allowing access to all, and unmapping all; for a quarter of a second.
void measure(const Chunks& chunks, const std::string& what) {
  Samples map, access, unmap, unmap_one, rate;
  const auto begin = Clock::now();
  while (seconds_since(begin) < 0.25 || map.count() < 5) {
    const double mapping = microseconds([&] {
      for (std::size_t index = 0; index < chunks.count(); ++index) chunks.map(index);
    });
    const double accessing = microseconds([&] { chunks.let_gpu_access(chunks.at(), chunks.size()); });
    map.add(mapping / static_cast<double>(chunks.count()));
    access.add(accessing);
    CUresult at_once = CUDA_ERROR_UNKNOWN;
    if (map.count() % 2 == 0) {
      const double unmapping = microseconds([&] { at_once = chunks.try_unmap(chunks.at(), chunks.size()); });
      if (at_once == CUDA_SUCCESS) {
        unmap.add(unmapping);
        rate.add(static_cast<double>(chunks.size()) / (mapping + accessing + unmapping) / 1e3);
      }
    }
    if (at_once != CUDA_SUCCESS) {
      for (std::size_t index = 0; index < chunks.count(); ++index)
        unmap_one.add(microseconds([&] { chunks.unmap(chunks.at(index), chunks.size() / chunks.count()); }));
    }
  }
  tell(what + ": map, each", "us", map);
  tell(what + ": allow access to all at once", "us", access);
  tell(what + ": unmap all at once", "us", unmap);
  tell(what + ": unmap, each", "us", unmap_one);
  tell(what + ": map, access and unmap", "GB/s", rate);
}

void map_all_and_unmap(const Chunks& chunks) {
  for (std::size_t index = 0; index < chunks.count(); ++index) chunks.map(index);
  chunks.let_gpu_access(chunks.at(), chunks.size());
  chunks.unmap(chunks.at(), chunks.size());
}

// How long the call takes that enqueues a kernel which does nothing; the queue never fills.
Samples launches(const Gpu& gpu, CUstream stream, double seconds) {
  Samples samples;
  const auto begin = Clock::now();
  while (seconds_since(begin) < seconds) {
    for (int burst = 0; burst < 16; ++burst) samples.add(microseconds([&] { gpu.nothing(stream); }));
    gpu.wait(stream);
  }
  return samples;
}

}  // namespace

void mapping(const Context& context) {
  const Gpu& gpu = context.gpu;
  CUmemAllocationProp property{};
  property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property.location = on(gpu);
  std::size_t granularity = 0;
  gpu.check(gpu->cuMemGetAllocationGranularity(&granularity, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            "ask for the granularity");
  tell("smallest chunk", fmt::format("{} KiB", granularity >> 10));

  const CUdeviceptr word = gpu.memory(4);
  const CUstream busy = gpu.stream(), in = gpu.stream(), out = gpu.stream(), other = gpu.stream();
  const std::size_t copied = 32 * kMiB;
  const CUdeviceptr there = gpu.memory(2 * copied);
  void* const here = gpu.pinned(2 * copied);
  const auto arithmetic = [&] {
    gpu.burn(busy, word, 1'000'000);
    gpu.wait(busy);
  };
  const auto copies = [&] {
    gpu.check(gpu->cuMemcpyHtoDAsync(there, here, copied, in), "copy to the GPU");
    gpu.check(gpu->cuMemcpyDtoHAsync(static_cast<char*>(here) + copied, there + copied, copied, out),
              "copy from the GPU");
    gpu.wait(in);
    gpu.wait(out);
  };
  for (const auto& [beside, once] : {std::pair<std::string, std::function<void()>>{"idle", {}},
                                     {"beside arithmetic", arithmetic},
                                     {"beside copies", copies}})
    for (const std::size_t mib : {2, 8, 32, 64})
      for (const std::size_t count : {1, 16}) {
        if (!once) static_cast<void>(Chunks(gpu, mib * kMiB, count, on(gpu)));  // The first ones take longer.
        const Chunks chunks(gpu, mib * kMiB, count, on(gpu));
        const std::string what = fmt::format("{} x {} MiB {}", count, mib, beside);
        if (!once) tell(what + ": create, each", "us", chunks.create());
        std::optional<Load> load;
        if (once) load.emplace(gpu, once);
        measure(chunks, what);
      }

  tell("launch, nobody maps", "us", launches(gpu, other, 1));
  for (const bool beside : {false, true})
    for (const std::size_t mib : {2, 32}) {
      const Chunks chunks(gpu, mib * kMiB, 16, on(gpu));
      std::optional<Load> kernels;
      if (beside) kernels.emplace(gpu, arithmetic);
      const Load load(gpu, [&] { map_all_and_unmap(chunks); });
      tell(
          fmt::format("launch, another thread maps and unmaps 16 x {} MiB{}", mib, beside ? ", beside arithmetic" : ""),
          "us", launches(gpu, other, 1));
    }

  // Whether mapping slows down a kernel that uses much memory: the GPU forgets translations.
  const CUdeviceptr much = gpu.memory(1024 * kMiB);
  const auto stores = [&] {
    Samples samples;
    for (int round = 0; round < 20; ++round)
      samples.add(microseconds([&] {
        gpu.store(other, much, 256 * kMiB, 1);
        gpu.wait(other);
      }));
    return samples;
  };
  tell("a kernel that stores to 1 GiB, nobody maps", "us", stores());
  {
    const Chunks chunks(gpu, 2 * kMiB, 16, on(gpu));
    const Load load(gpu, [&] { map_all_and_unmap(chunks); });
    tell("a kernel that stores to 1 GiB, another thread maps", "us", stores());
  }

  // Whether it costs more where much is mapped already.
  for (const std::size_t mib : {2, 16}) {
    const Chunks many(gpu, mib * kMiB, 1024, on(gpu));
    for (std::size_t index = 0; index < many.count(); ++index) many.map(index);
    many.let_gpu_access(many.at(), many.size());
    Samples unmap, map;
    for (std::size_t round = 0; round < 200; ++round) {
      const std::size_t index = round * 337 % many.count();
      unmap.add(microseconds([&] { many.unmap(many.at(index), mib * kMiB); }));
      map.add(microseconds([&] {
        many.map(index);
        many.let_gpu_access(many.at(index), mib * kMiB);
      }));
    }
    tell(fmt::format("unmap one of 1024 x {} MiB", mib), "us", unmap);
    tell(fmt::format("map one among 1024 x {} MiB", mib), "us", map);
    many.unmap(many.at(), many.size());
  }
}

}  // namespace spillway::probe
