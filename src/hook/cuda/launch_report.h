#pragma once

#include <array>
#include <cstddef>
#include <memory_resource>

#include "hook/cuda/copies.h"
#include "hook/cuda/shim.h"

namespace spillway {

// What one call of the driver is reported as. Lives on the launching thread's stack; no heap for up to 32 touches.
class LaunchReport {
 public:
  explicit LaunchReport(Shim& shim) : shim_(shim) { touches_.reserve(kTouches); }
  LaunchReport(const LaunchReport&) = delete;
  LaunchReport& operator=(const LaunchReport&) = delete;

  CudaLaunch launch;

  void kernel(CUfunction function, const KernelArguments& arguments) {
    launch.kind = CudaLaunch::Kind::kernel;
    launch.function = function;
    if (!shim_.scanner.scan_kernel(function, arguments, touches_)) launch.is_complete = false;
  }
  void copy(const CopySides& sides) {
    launch.kind = CudaLaunch::Kind::copy;
    shim_.scanner.scan_bytes(sides.from, CudaAccess::read, touches_);
    shim_.scanner.scan_bytes(sides.to, CudaAccess::write, touches_);
  }
  void set(const CudaBytes& bytes) {
    launch.kind = CudaLaunch::Kind::set;
    shim_.scanner.scan_bytes(bytes, CudaAccess::write, touches_);
  }
  void graph(CUgraphExec graph) {
    launch.kind = CudaLaunch::Kind::graph;
    launch.graph = graph;
    if (!shim_.graphs.scan(graph, shim_.scanner, touches_)) launch.is_complete = false;
  }

  // Once all is said.
  const CudaLaunch& finished(bool per_thread) {
    if (per_thread && launch.stream == nullptr) launch.stream = CU_STREAM_PER_THREAD;
    launch.touches = touches_;
    launch.is_captured = shim_.has_captured.load(std::memory_order_relaxed) && is_captured();
    return launch;
  }

 private:
  static constexpr std::size_t kTouches = 32;

  bool is_captured() const {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const auto ask = shim_.driver.cuStreamIsCapturing;
    return ask != nullptr && ask(launch.stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  }

  Shim& shim_;
  alignas(CudaTouch) std::array<std::byte, kTouches * sizeof(CudaTouch)> first_;
  std::pmr::monotonic_buffer_resource memory_{first_.data(), first_.size()};
  LaunchScanner::Touches touches_{&memory_};
};

}  // namespace spillway
