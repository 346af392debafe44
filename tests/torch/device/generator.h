#pragma once

#include <ATen/core/Generator.h>

namespace spillway {

const at::Generator& default_generator();
// The CPU's generator that kernels draw from.
at::Generator cpu_generator_of(const at::Generator& generator);

}  // namespace spillway
