#pragma once

#include <cstdint>

namespace spillway {

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the same numbers everywhere, of a seed that may be any.
constexpr std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t bits = state += 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

// From -1 to below 1.
constexpr double next_signed(std::uint64_t& state) {
  return static_cast<double>(next_random(state) >> 11) * 0x1p-52 - 1;
}

}  // namespace spillway
