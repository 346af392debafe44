#pragma once

#include <cstddef>

#include "base/ids.h"

namespace spillway {

// Bytes that a kernel uses.
struct ByteExtent {
  const void* begin = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
  bool sparse = false;  // touches some of the bytes, nobody knows beforehand which
  TensorLabel tensor{};
};

}  // namespace spillway
