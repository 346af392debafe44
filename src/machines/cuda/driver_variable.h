#pragma once

namespace spillway {

// Names the real driver's absolute path where the launch shim stands before it.
inline constexpr const char* kCudaDriverVariable = "SPILLWAY_CUDA_DRIVER";

}  // namespace spillway
