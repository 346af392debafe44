#pragma once

#include <array>

#include "plan/parameters.h"

namespace spillway {

inline constexpr std::array kVdnnParameters{
    ParameterSpec{"shrink", 0, 0, 1, true, "1: offloads even where all fits, as published; 0: then nothing moves"}};

}  // namespace spillway
