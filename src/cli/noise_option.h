#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "trace/noise.h"

namespace CLI {
class App;
}

namespace spillway {

// --noise and --seed, which the commands share that simulate.
struct NoiseOption {
  std::string percent;
  std::string seed = "0";

  void add_to(CLI::App& command);
  Result<std::optional<Noise>> read() const;
};

}  // namespace spillway
