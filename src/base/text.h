#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace spillway {

// Sizes are read and printed in IEC units: "8GiB", "512MiB", "1.5GiB", "4096" (bytes). KB/MB/GB/TB are decimal.
// Errors name the text and what would have been right.
Result<Bytes> parse_bytes(std::string_view text);
std::string to_text(Bytes size);  // "8 GiB", "1.5 MiB", "17 B"

// Rates are decimal: "3.2GB/s". Also accepts a plain number of bytes per second.
Result<BytesPerSecond> parse_rate(std::string_view text);
std::string to_text(BytesPerSecond rate);  // "3.2 GB/s"

// "20us", "1.5ms", "10s", "300ns"; a plain number is refused, since its unit would be a guess.
Result<Nanos> parse_duration(std::string_view text);
std::string to_text(Nanos time);  // "20 us", "1.234 s"

// Whole ones: "28%".
Result<std::uint64_t> parse_percent(std::string_view text);

// What nlohmann's parser says, without its own "[json.exception.parse_error.101] " before it.
std::string_view json_reason(std::string_view what);

// Whether its lists and objects nest deeper than that. A parser's own recursion is bounded so, before it begins.
bool nests_deeper(std::string_view json, int most);

// The next line of `rest`, which is then what follows it: without its end, "\n" or "\r\n".
std::string_view take_line(std::string_view& rest);

}  // namespace spillway
