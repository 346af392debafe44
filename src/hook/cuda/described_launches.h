#pragma once

// What each of the driver's launches, copies and sets is, from its arguments: (report, arguments ...).

#include <cuda.h>

#include <cstdint>
#include <tuple>

#include "hook/cuda/copies.h"
#include "hook/cuda/launch_report.h"
#include "hook/cuda/packed_arguments.h"

namespace spillway::describe {

auto last_of(auto... all) { return std::get<sizeof...(all) - 1>(std::tuple(all...)); }

constexpr auto kernel = [](LaunchReport& report, CUfunction function, unsigned grid_x, unsigned, unsigned, unsigned,
                           unsigned, unsigned, unsigned, CUstream stream, void** each, void** extra = nullptr) {
  report.launch.stream = stream;
  report.kernel(function, {.each = each, .packed = packed_arguments(extra), .grid = grid_x});
};
constexpr auto kernel_ex = [](LaunchReport& report, const CUlaunchConfig* config, CUfunction function, void** each,
                              void** extra) {
  if (config == nullptr) return;  // the driver says so
  report.launch.stream = config->hStream;
  report.kernel(function, {.each = each, .packed = packed_arguments(extra), .grid = config->gridDimX});
};
// One on each of several devices. The function and stream are the first's.
constexpr auto kernels = [](LaunchReport& report, CUDA_LAUNCH_PARAMS* each, unsigned count, unsigned) {
  for (unsigned i = each != nullptr ? count : 0; i-- > 0;) {
    report.launch.stream = each[i].hStream;
    report.kernel(each[i].function, {.each = each[i].kernelParams, .packed = {}, .grid = each[i].gridDimX});
  }
};
// Their parameters were set before, by functions that CUDA has given up.
constexpr auto old_kernel = [](LaunchReport& report, CUfunction function, auto... grid_and_stream) {
  if constexpr (sizeof...(grid_and_stream) == 3) report.launch.stream = last_of(grid_and_stream...);
  report.launch.function = function;
  report.launch.is_complete = false;
};
constexpr auto graph_launch = [](LaunchReport& report, CUgraphExec graph, CUstream stream) {
  report.launch.stream = stream;
  report.graph(graph);
};

// Addresses of the host are looked up, too, since they may be the device's as well (unified addressing).
inline std::uint64_t number(CUdeviceptr address) { return address; }
inline std::uint64_t number(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

constexpr auto copy = [](LaunchReport& report, auto to, auto from, size_t bytes, CUstream stream = nullptr) {
  report.launch.stream = stream;
  report.copy({.from = {number(from), bytes}, .to = {number(to), bytes}});
};
constexpr auto copy_peer = [](LaunchReport& report, CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext,
                              size_t bytes, CUstream stream = nullptr) { copy(report, to, from, bytes, stream); };
constexpr auto copy_to_array = [](LaunchReport& report, CUarray, size_t, auto from, size_t bytes,
                                  CUstream stream = nullptr) {
  report.launch.stream = stream;
  report.copy({.from = {number(from), bytes}, .to = {}});
};
constexpr auto copy_from_array = [](LaunchReport& report, auto to, CUarray, size_t, size_t bytes,
                                    CUstream stream = nullptr) {
  report.launch.stream = stream;
  report.copy({.from = {}, .to = {number(to), bytes}});
};
constexpr auto copy_arrays = [](LaunchReport& report, CUarray, size_t, CUarray, size_t, size_t) { report.copy({}); };
constexpr auto copy_2d = [](LaunchReport& report, const CUDA_MEMCPY2D* sides, CUstream stream = nullptr) {
  report.launch.stream = stream;
  if (sides != nullptr) report.copy(sides_of(*sides));
};
constexpr auto copy_3d = [](LaunchReport& report, const auto* sides, CUstream stream = nullptr) {
  report.launch.stream = stream;
  if (sides != nullptr) report.copy(sides_of_3d(*sides));
};
// The version before CUDA 13 has a place for the index of the copy that failed before the stream.
constexpr auto copy_batch = [](LaunchReport& report, CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                               CUmemcpyAttributes*, size_t*, size_t, auto... fail_index_and_stream) {
  report.launch.kind = CudaLaunch::Kind::copy;
  const bool is_given = to != nullptr && from != nullptr && bytes != nullptr;
  for (size_t i = 0; is_given && i < count; ++i) report.copy({.from = {from[i], bytes[i]}, .to = {to[i], bytes[i]}});
  report.launch.stream = last_of(fail_index_and_stream...);
};
constexpr auto copy_3d_batch = [](LaunchReport& report, size_t count, CUDA_MEMCPY3D_BATCH_OP* copies, auto... others) {
  report.launch.kind = CudaLaunch::Kind::copy;
  for (size_t i = 0; copies != nullptr && i < count; ++i) report.copy(sides_of(copies[i]));
  report.launch.stream = last_of(others...);
};
template <size_t element_bytes>
constexpr auto set = [](LaunchReport& report, CUdeviceptr address, auto, size_t count, CUstream stream = nullptr) {
  report.launch.stream = stream;
  report.set({.address = address, .bytes = count * element_bytes});
};
template <size_t element_bytes>
constexpr auto set_2d = [](LaunchReport& report, CUdeviceptr address, size_t pitch, auto, size_t width, size_t height,
                           CUstream stream = nullptr) {
  report.launch.stream = stream;
  report.set(side_of({.address = address, .pitch = pitch}, {.width = width * element_bytes, .rows = height}));
};

constexpr auto decompress = [](LaunchReport& report, CUmemDecompressParams* each, size_t count, unsigned, size_t*,
                               CUstream stream) {
  report.launch.kind = CudaLaunch::Kind::copy;
  report.launch.stream = stream;
  for (size_t i = 0; each != nullptr && i < count; ++i) {
    report.copy({.from = {number(each[i].src), each[i].srcNumBytes}, .to = {number(each[i].dst), each[i].dstNumBytes}});
    report.copy({.from = {}, .to = {number(each[i].dstActBytes), sizeof *each[i].dstActBytes}});
  }
};

}  // namespace spillway::describe
