#pragma once

#include <cstdint>
#include <string_view>

namespace spillway {

inline constexpr std::string_view kTimelineFormat = "spillway-timeline";
inline constexpr std::uint64_t kTimelineVersion = 1;

}  // namespace spillway
