#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace spillway {

// What a policy lets a user set: `--policy deepum:ahead=16`.
struct ParameterSpec {
  std::string_view name;
  double fallback;           // unless it is set
  double least, most;        // what it may be
  bool is_whole;             // a count or a switch (0, 1), not a part or a factor
  std::string_view meaning;  // with its unit, and where the value comes from
  bool is_file = false;      // It names a file, or nothing; the numbers mean nothing.
};
constexpr ParameterSpec file_parameter(std::string_view name, std::string_view meaning) {
  return {.name = name, .fallback = 0, .least = 0, .most = 0, .is_whole = false, .meaning = meaning, .is_file = true};
}

// A number, or a file's path.
using ParameterValue = std::variant<double, std::string>;

// The values of one policy's parameters: those that were set, and fallbacks for the others.
class Parameters {
 public:
  static constexpr std::size_t kMost = 12;

  constexpr Parameters() = default;
  constexpr explicit Parameters(std::span<const ParameterSpec> specs) : specs_(specs) {}

  constexpr std::span<const ParameterSpec> specs() const { return specs_; }
  // Only of a parameter that the policy has.
  constexpr double operator[](std::string_view name) const {
    const std::size_t at = place_of(name);
    CHECK(at < specs_.size());
    CHECK(!specs_[at].is_file);
    return set_[at] ? std::get<double>(*set_[at]) : specs_[at].fallback;
  }
  // The path; nothing if none was set.
  std::optional<std::string> file(std::string_view name) const {
    const std::size_t at = place_of(name);
    CHECK(at < specs_.size() && specs_[at].is_file);
    return set_[at] ? std::optional(std::get<std::string>(*set_[at])) : std::nullopt;
  }
  std::uint32_t count(std::string_view name) const { return static_cast<std::uint32_t>((*this)[name]); }
  bool is_on(std::string_view name) const { return (*this)[name] != 0; }

  constexpr bool has(std::string_view name) const { return place_of(name) < specs_.size(); }
  constexpr bool is_set(std::string_view name) const { return set_[place_of(name)].has_value(); }
  void set(std::string_view name, ParameterValue value) {
    const std::size_t at = place_of(name);
    CHECK(at < specs_.size() && std::holds_alternative<std::string>(value) == specs_[at].is_file);
    set_[at] = std::move(value);
  }
  // ":ahead=16,assoc=4", of those that were set; "" if none was.
  std::string text() const;

 private:
  constexpr std::size_t place_of(std::string_view name) const {
    std::size_t at = 0;
    while (at < specs_.size() && specs_[at].name != name) ++at;
    return at;
  }

  std::span<const ParameterSpec> specs_;
  std::array<std::optional<ParameterValue>, kMost> set_{};
};

}  // namespace spillway
