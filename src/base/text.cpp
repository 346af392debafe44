#include "base/text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace spillway {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array kByteUnits{
    Unit{"", 1},         Unit{"B", 1},        Unit{"KiB", 0x1p10}, Unit{"MiB", 0x1p20}, Unit{"GiB", 0x1p30},
    Unit{"TiB", 0x1p40}, Unit{"PiB", 0x1p50}, Unit{"KB", 1e3},     Unit{"kB", 1e3},     Unit{"MB", 1e6},
    Unit{"GB", 1e9},     Unit{"TB", 1e12},    Unit{"PB", 1e15},
};
constexpr std::array kRateUnits{
    Unit{"", 1},       Unit{"B/s", 1},     Unit{"kB/s", 1e3},     Unit{"KB/s", 1e3},     Unit{"MB/s", 1e6},
    Unit{"GB/s", 1e9}, Unit{"TB/s", 1e12}, Unit{"KiB/s", 0x1p10}, Unit{"MiB/s", 0x1p20}, Unit{"GiB/s", 0x1p30},
};
constexpr std::array kTimeUnits{
    Unit{"ns", 1}, Unit{"us", 1e3}, Unit{"ms", 1e6}, Unit{"s", 1e9}, Unit{"min", 60e9}, Unit{"h", 3600e9},
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// A number of zero or more with a unit out of the list, in the unit of factor 1, rounded to the nearest whole one.
Result<std::uint64_t> parse_with_unit(std::string_view text, std::span<const Unit> units, std::string_view what,
                                      std::string_view example) {
  const auto wrong = [&](std::string_view why) {
    return fail(Errc::bad_input, fmt::format("'{}' is not a {}: {}; write it like {}", text, what, why, example));
  };
  const std::string_view trimmed_text = trimmed(text);
  double number = 0;
  const auto [end, error] =
      std::from_chars(trimmed_text.data(), trimmed_text.data() + trimmed_text.size(), number, std::chars_format::fixed);
  if (error != std::errc{}) return wrong("it does not begin with a number");
  if (!std::isfinite(number) || number < 0) return wrong("it must be a finite number of at least 0");
  const std::string_view unit_name = trimmed(trimmed_text.substr(static_cast<std::size_t>(end - trimmed_text.data())));
  for (const Unit& unit : units) {
    if (unit.name != unit_name) continue;
    const double value = number * unit.factor;
    if (value >= 0x1p63) return wrong("it is too large");
    return static_cast<std::uint64_t>(std::llround(value));
  }
  return unit_name.empty() ? wrong("its unit is missing") : wrong(fmt::format("unknown unit '{}'", unit_name));
}

// Up to three digits behind the point, trailing zeros dropped.
std::string short_number(double value) {
  std::string text = fmt::format("{:.{}f}", value, value >= 100 ? 1 : value >= 10 ? 2 : 3);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string with_largest_unit(double value, std::span<const Unit> ascending) {
  const Unit* best = &ascending.front();
  for (const Unit& unit : ascending)
    if (value >= unit.factor) best = &unit;
  return fmt::format("{} {}", short_number(value / best->factor), best->name);
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  TRY(const std::uint64_t value, parse_with_unit(text, kByteUnits, "size", "8GiB or 512MiB"));
  return Bytes{value};
}

std::string to_text(Bytes size) {
  return with_largest_unit(static_cast<double>(size.value), std::span(kByteUnits).subspan(1, 6));
}

Result<BytesPerSecond> parse_rate(std::string_view text) {
  TRY(const std::uint64_t value, parse_with_unit(text, kRateUnits, "rate", "3.2GB/s"));
  return BytesPerSecond{value};
}

std::string to_text(BytesPerSecond rate) {
  static constexpr std::array kUnits{Unit{"B/s", 1}, Unit{"kB/s", 1e3}, Unit{"MB/s", 1e6}, Unit{"GB/s", 1e9}};
  return with_largest_unit(static_cast<double>(rate.value), kUnits);
}

Result<Nanos> parse_duration(std::string_view text) {
  TRY(const std::uint64_t value, parse_with_unit(text, kTimeUnits, "duration", "20us or 1.5s"));
  return Nanos{value};
}

std::string to_text(Nanos time) {
  return with_largest_unit(static_cast<double>(time.value), std::span(kTimeUnits).first(4));
}

Result<std::uint64_t> parse_percent(std::string_view text) {
  const std::string_view whole = trimmed(text);
  const std::string_view digits = trimmed(whole.substr(0, whole.size() - whole.ends_with('%')));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (!whole.ends_with('%') || error != std::errc{} || end != digits.data() + digits.size())
    return fail(Errc::bad_input, fmt::format("'{}' is not a whole number of percent; write it like 28%", text));
  return value;
}

std::string_view json_reason(std::string_view what) {
  const std::size_t prefix = what.find("] ");
  return prefix == std::string_view::npos ? what : what.substr(prefix + 2);
}

bool nests_deeper(std::string_view json, int most) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (in_text) {
      if (c == '\\')
        ++at;
      else if (c == '"')
        in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      if (++depth > most) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

std::string_view take_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace spillway
