// What may be relied upon: each of these in a process of its own, since a fault ends a context.
#include <fmt/format.h>

#include "parts.h"
#include "virtual_memory.h"

namespace spillway::probe {
namespace {

constexpr std::size_t kChunk = 2 << 20;
constexpr std::uint32_t kWords = kChunk / 4;

// The sum of a chunk's words, as a kernel sees them.
std::uint32_t sum_of(const Gpu& gpu, CUstream stream, CUdeviceptr chunk) { return gpu.sum_of(stream, chunk, kWords); }

}  // namespace

void handles_keep_their_bytes(const Context& context) {
  const Gpu& gpu = context.gpu;
  const CUstream stream = gpu.stream();
  const Chunks chunks(gpu, kChunk, 2, on(gpu));
  chunks.map(0);
  chunks.let_gpu_access(chunks.at(), kChunk);
  gpu.store(stream, chunks.at(), kWords, 3);
  gpu.wait(stream);
  chunks.unmap(chunks.at(), kChunk);
  chunks.map_at(chunks.at(1), 0);
  chunks.let_gpu_access(chunks.at(1), kChunk);
  tell("bytes of a handle that is mapped elsewhere", sum_of(gpu, stream, chunks.at(1)) == 3 * kWords ? "kept" : "lost");
}

void one_handle_at_two_addresses(const Context& context) {
  const Gpu& gpu = context.gpu;
  const CUstream stream = gpu.stream();
  const Chunks chunks(gpu, kChunk, 2, on(gpu));
  chunks.map(0);
  if (const CUresult result = gpu->cuMemMap(chunks.at(1), kChunk, 0, chunks.handle(0), 0); result != CUDA_SUCCESS)
    return tell("a handle at a second address", "refused: " + gpu->text_of(result));
  chunks.let_gpu_access(chunks.at(), 2 * kChunk);
  gpu.store(stream, chunks.at(), kWords, 5);
  tell("a handle at a second address", sum_of(gpu, stream, chunks.at(1)) == 5 * kWords
                                           ? "works: the next kernel sees what was written at the first"
                                           : "works, but with other bytes");
}

// A kernel stores to chunk 0 all the time. The neighbour lies in the same 32 MiB, the far chunk does not.
void unmap_beside_a_kernel(const Context& context) {
  const Gpu& gpu = context.gpu;
  const CUstream stream = gpu.stream();
  const Chunks chunks(gpu, kChunk, 64, on(gpu));
  for (std::size_t index = 0; index < chunks.count(); ++index) chunks.map(index);
  chunks.let_gpu_access(chunks.at(), chunks.size());
  gpu.store(stream, chunks.at(), kWords, 1);
  gpu.wait(stream);
  std::uint32_t value = 1;
  for (const auto& [index, which] : {std::pair<std::size_t, const char*>{1, "a neighbour"}, {60, "a far chunk"}}) {
    ++value;
    const auto begin = Clock::now();
    gpu.store_for(stream, chunks.at(), kWords, value, 300'000'000);
    Samples unmap, map;
    while (gpu->cuStreamQuery(stream) == CUDA_ERROR_NOT_READY && unmap.count() < 1000) {
      unmap.add(microseconds([&] { chunks.unmap(chunks.at(index), kChunk); }));
      map.add(microseconds([&] {
        chunks.map(index);
        chunks.let_gpu_access(chunks.at(index), kChunk);
      }));
    }
    const CUresult end = gpu->cuStreamSynchronize(stream);
    const double lasted = seconds_since(begin) * 1e3;
    tell(fmt::format("unmap {} beside a kernel of 300 ms", which), "us", unmap);
    tell(fmt::format("map {} beside it", which), "us", map);
    tell(fmt::format("the kernel beside which {} went", which),
         end != CUDA_SUCCESS ? "failed: " + gpu->text_of(end)
                             : fmt::format("ended well after {:.0f} ms, its bytes are {}", lasted,
                                           sum_of(gpu, stream, chunks.at()) == value * kWords ? "right" : "wrong"));
  }
}

// The last part: it is meant to break things.
void unmap_under_a_kernel(const Context& context) {
  const Gpu& gpu = context.gpu;
  const CUstream stream = gpu.stream();
  const Chunks chunks(gpu, kChunk, 1, on(gpu));
  chunks.map(0);
  chunks.let_gpu_access(chunks.at(), kChunk);
  gpu.store(stream, chunks.at(), kWords, 1);
  gpu.wait(stream);
  gpu.store_for(stream, chunks.at(), kWords, 2, 300'000'000);
  CUresult result = CUDA_SUCCESS;
  const double call = microseconds([&] { result = gpu->cuMemUnmap(chunks.at(), kChunk); });
  const CUresult running = gpu->cuStreamQuery(stream);
  const CUresult ended = gpu->cuStreamSynchronize(stream);
  tell("unmapping what a kernel of 300 ms stores to",
       fmt::format("took {:.0f} us ({}); then the kernel {}; its end: {}", call, gpu->text_of(result),
                   running == CUDA_ERROR_NOT_READY ? "still ran" : "had ended", gpu->text_of(ended)));
}

void copy_to_what_is_not_mapped(const Context& context) {
  const Gpu& gpu = context.gpu;
  const CUstream stream = gpu.stream();
  const Chunks chunks(gpu, kChunk, 1, on(gpu));
  void* const here = gpu.pinned(kChunk);
  const CUresult call = gpu->cuMemcpyHtoDAsync(chunks.at(), here, kChunk, stream);
  const CUresult end = gpu->cuStreamSynchronize(stream);
  const CUresult after = gpu->cuCtxSynchronize();
  tell("a copy to an address that is not mapped",
       fmt::format("the call: {}; its end: {}; the context after it: {}", gpu->text_of(call), gpu->text_of(end),
                   gpu->text_of(after)));
}

void kernel_on_what_is_not_mapped(const Context& context) {
  const Gpu& gpu = context.gpu;
  const CUstream stream = gpu.stream();
  const Chunks chunks(gpu, kChunk, 1, on(gpu));
  gpu.store(stream, chunks.at(), kWords, 1);
  const CUresult end = gpu->cuStreamSynchronize(stream);
  const CUresult after = gpu->cuCtxSynchronize();
  tell("a kernel on an address that is not mapped",
       fmt::format("its end: {}; the context after it: {}", gpu->text_of(end), gpu->text_of(after)));
}

// Kernels are loaded when they are first launched, unless CUDA_MODULE_LOADING says otherwise; that may wait for others.
void first_launch_while_others_run(const Context& context) {
  const Gpu& gpu = context.gpu;
  const CUstream busy = gpu.stream(), other = gpu.stream();
  gpu.nothing(other);
  gpu.wait(other);
  constexpr double kBusy = 500;
  const auto begin = Clock::now();
  gpu.spin(busy, static_cast<std::uint64_t>(kBusy * 1e6));
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  const double loading = microseconds([&] { module = gpu.module(); });
  const double finding =
      microseconds([&] { gpu.check(gpu->cuModuleGetFunction(&function, module, "nothing"), "find a kernel"); });
  const double launching = microseconds([&] {
    gpu.check(gpu->cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, other, nullptr, nullptr), "launch a kernel");
  });
  const CUresult running = gpu->cuStreamQuery(busy);
  tell(fmt::format("a kernel's first launch beside one of {:.0f} ms", kBusy),
       fmt::format("load {:.0f} us, find {:.0f} us, launch {:.0f} us; the other one {} after {:.0f} ms", loading,
                   finding, launching, running == CUDA_ERROR_NOT_READY ? "still ran" : "had ended",
                   seconds_since(begin) * 1e3));
  gpu.wait(busy);
}

}  // namespace spillway::probe
