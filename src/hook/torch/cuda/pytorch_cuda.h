#pragma once

// PyTorch's headers of CUDA, and only here: they define a CHECK of their own, which must not replace ours.
#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/ApproximateClock.h>
#include <cuda_runtime_api.h>
#include <torch/headeronly/version.h>

#include "base/check.h"

// Of PyTorch's second major version; 2.11 is the oldest that the allocator is built for.
#define SPILLWAY_TORCH_SINCE(minor) (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= (minor))
