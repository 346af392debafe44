#pragma once

#include <cstdint>

#include "trace/trace.h"

namespace spillway {

// A random program that every machine can run: tensors of whole blocks, born when a kernel first writes them, read by
// later kernels in any order, freed at random. A function of its arguments alone.
Trace random_program(std::uint64_t seed, std::uint32_t kernels);

}  // namespace spillway
