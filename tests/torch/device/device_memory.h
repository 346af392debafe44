#pragma once

#include <c10/core/Allocator.h>
#include <cuda.h>

#include <cstddef>

namespace spillway {

// From Spillway where it manages the device's tensors, else from the driver.
c10::Allocator& device_allocator();

// Another stream uses memory of the allocator, too.
void record_stream(void* memory, CUstream stream);

// Of tensors, each rounded up to 512 bytes.
struct AllocatedBytes {
  std::size_t now = 0, most = 0;
};
AllocatedBytes allocated_bytes();
void forget_most_allocated();

}  // namespace spillway
