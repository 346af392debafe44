#pragma once

#include <compare>
#include <cstdint>

#include "base/check.h"

namespace spillway {

// A count with its unit in the type: a byte count can never be passed where a time is meant.
template <class Tag>
struct Quantity {
  std::uint64_t value{};

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    CHECK(a.value >= b.value);
    return {a.value - b.value};
  }
  friend constexpr Quantity operator*(Quantity a, std::uint64_t times) { return {a.value * times}; }
  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }
};

using Bytes = Quantity<struct BytesTag>;
using Nanos = Quantity<struct NanosTag>;

struct BytesPerSecond {
  std::uint64_t value{};
  friend constexpr auto operator<=>(BytesPerSecond, BytesPerSecond) = default;
};

constexpr Bytes operator""_KiB(unsigned long long n) { return {n << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return {n << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return {n << 30}; }

constexpr double seconds(Nanos time) { return static_cast<double>(time.value) * 1e-9; }

// The excess of a over b, or nothing.
template <class Tag>
constexpr Quantity<Tag> excess(Quantity<Tag> a, Quantity<Tag> b) {
  return a > b ? a - b : Quantity<Tag>{};
}

// Rounds up: a transfer is not over before its last byte has moved; 146 years and more are 146 years. The rate must not
// be zero.
constexpr Nanos transfer_time(Bytes size, BytesPerSecond rate) {
  CHECK(rate.value > 0);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  const auto exact = (static_cast<unsigned __int128>(size.value) * 1'000'000'000u + rate.value - 1) / rate.value;
  return {exact < kMost ? static_cast<std::uint64_t>(exact) : kMost};
}
static_assert(transfer_time(Bytes{1}, BytesPerSecond{3'000'000'000}) == Nanos{1});

}  // namespace spillway
