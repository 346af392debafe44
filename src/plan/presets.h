#pragma once

#include <span>
#include <string_view>

namespace spillway {

// The machine files that are compiled into the program.
struct Preset {
  std::string_view name, toml;
};
std::span<const Preset> presets();

}  // namespace spillway
