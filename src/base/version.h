#pragma once

#include <string_view>

namespace spillway {

inline constexpr std::string_view kVersion = SPILLWAY_VERSION;

}  // namespace spillway
