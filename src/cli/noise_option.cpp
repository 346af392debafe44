#include "cli/noise_option.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/text.h"

namespace spillway {

void NoiseOption::add_to(CLI::App& command) {
  CLI::Option* noise = command.add_option(
      "--noise", percent, "kernels take up to so much more or less than plans reckon with: 20%; default: none");
  command.add_option("--seed", seed, "another seed is other noise")->needs(noise)->capture_default_str();
}

Result<std::optional<Noise>> NoiseOption::read() const {
  if (percent.empty()) return std::nullopt;
  const auto value = parse_percent(percent);
  if (!value) return fail(Errc::usage, "--noise: " + value.error().message);
  if (*value > 100) return fail(Errc::usage, fmt::format("--noise: '{}' is too large; give it 100% at most", percent));
  return Noise{.percent = *value, .seed = seed};
}

}  // namespace spillway
