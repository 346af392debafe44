#pragma once

#include <cuda.h>

#include "machines/cuda/driver.h"

namespace spillway {

// While it lives the calling thread, which may be any of the script's, can call the driver for us: the context is
// current, and a graph that is being captured does not end because of what we call.
class DriverScope {
 public:
  DriverScope(const CudaDriver& driver, CUcontext context) : driver_(driver) {
    pushed_ = driver_.cuCtxPushCurrent(context) == CUDA_SUCCESS;
    exchanged_ = driver_.cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
  }
  ~DriverScope() {
    if (exchanged_) driver_.cuThreadExchangeStreamCaptureMode(&mode_);
    CUcontext ours = nullptr;
    if (pushed_) driver_.cuCtxPopCurrent(&ours);
  }
  DriverScope(const DriverScope&) = delete;
  DriverScope& operator=(const DriverScope&) = delete;

 private:
  const CudaDriver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // then the thread's own
  bool pushed_ = false, exchanged_ = false;
};

}  // namespace spillway
