#include "reproduce/numbers.h"

#include <fmt/format.h>

#include <cmath>

namespace spillway {

std::string number_text(double value) {
  if (!std::isfinite(value)) return "∞";
  const double size = std::abs(value);
  if (size >= 1e6) return fmt::format("{:.2e}", value);
  if (size >= 1000) return fmt::format("{:.0f}", value);
  if (size >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

std::string number_text(double value, std::string_view unit) {
  if (unit == "×") return number_text(value) + "×";
  // "% of ideal" and the like: the first word is the unit, the rest says what of.
  const std::string_view symbol = unit.substr(0, unit.find(' '));
  return symbol.empty() ? number_text(value) : fmt::format("{} {}", number_text(value), symbol);
}

}  // namespace spillway
