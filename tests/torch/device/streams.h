#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <cuda.h>

namespace spillway {

inline constexpr c10::DeviceType kStrictType = c10::DeviceType::PrivateUse1;
inline c10::Device strict_device() { return {kStrictType, 0}; }

// The default stream is null; the others come from a small pool.
CUstream handle_of(c10::StreamId id);
// The calling thread's.
CUstream current_stream();

// Waits for it, or for all, and throws what work there has thrown since somebody waited.
void synchronize(CUstream stream);
void synchronize_device();

}  // namespace spillway
