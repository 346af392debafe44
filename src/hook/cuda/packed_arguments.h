#pragma once

#include <cuda.h>

#include <cstddef>
#include <span>

namespace spillway {

// The buffer that cuLaunchKernel's `extra` names; without data where it names none.
inline std::span<const std::byte> packed_arguments(void** extra) {
  const void* buffer = nullptr;
  std::size_t bytes = 0;
  for (; extra != nullptr && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<const std::size_t*>(extra[1]);
  }
  return {static_cast<const std::byte*>(buffer), buffer != nullptr ? bytes : 0};
}

}  // namespace spillway
