#include "cli/noise_option.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "base/text.h"

namespace spillway {

void NoiseOption::add_to(CLI::App& command) {
  CLI::Option* noise = command.add_option(
      "--noise", percent, "kernels take up to so much more or less than plans reckon with: 20%; default: none");
  command.add_option("--seed", seed, "another seed is other noise")->needs(noise)->capture_default_str();
}

Result<std::optional<Noise>> NoiseOption::read() const {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(seed.data(), seed.data() + seed.size(), number);
  if (error != std::errc{} || end != seed.data() + seed.size())
    return fail(Errc::usage, fmt::format("--seed: '{}' is no whole number from 0 to 2^64 - 1", seed));
  if (percent.empty()) return std::nullopt;
  const auto value = parse_percent(percent);
  if (!value) return fail(Errc::usage, "--noise: " + value.error().message);
  if (*value > 100) return fail(Errc::usage, fmt::format("--noise: '{}' is too large; give it 100% at most", percent));
  return Noise{.percent = *value, .seed = number};
}

}  // namespace spillway
