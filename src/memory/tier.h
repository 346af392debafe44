#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/ids.h"
#include "base/units.h"

namespace spillway {

// Where bytes can be. The order is that of distance from the kernels.
enum class Tier : std::uint8_t { device, host, ssd };
inline constexpr std::array kTiers{Tier::device, Tier::host, Tier::ssd};
std::string_view to_text(Tier tier);

// One value for each tier.
template <class T>
struct PerTier {
  T device{}, host{}, ssd{};

  constexpr T& operator[](Tier tier) { return tier == Tier::device ? device : tier == Tier::host ? host : ssd; }
  constexpr const T& operator[](Tier tier) const {
    return tier == Tier::device ? device : tier == Tier::host ? host : ssd;
  }
  friend constexpr bool operator==(const PerTier&, const PerTier&) = default;
};

// One value for each of the six ways between two different tiers.
template <class T>
class PerLink {
 public:
  constexpr T& operator()(Tier from, Tier to) { return values_[index(from, to)]; }
  constexpr const T& operator()(Tier from, Tier to) const { return values_[index(from, to)]; }
  constexpr PerLink& operator+=(const PerLink& others) {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += others.values_[i];
    return *this;
  }

 private:
  static constexpr std::size_t index(Tier from, Tier to) {
    CHECK(from != to);
    return static_cast<std::size_t>(from) * 3 + static_cast<std::size_t>(to);
  }
  std::array<T, 9> values_{};
};

// Consecutive blocks [first, first + count).
struct BlockRange {
  BlockId first;
  std::uint32_t count = 0;

  constexpr BlockId end() const { return {first.value + count}; }
  constexpr bool contains(BlockId block) const { return first <= block && block < end(); }
  friend constexpr bool operator==(BlockRange, BlockRange) = default;
};

// The unit of residency: at most so large in the simulator, exactly so on the CPU, at least so on a GPU. A run on a GPU
// has blocks of one size, which its machine knows.
inline constexpr Bytes kBlockBytes = 2_MiB;
inline constexpr Bytes kMostBlockBytes = 32_MiB;

}  // namespace spillway
