#pragma once

#include <string>
#include <utility>

#include "base/split_mix.h"
#include "latency/network.h"

namespace spillway {

// For tests.
inline Kernel kernel_that_reads(std::string name, std::uint64_t bytes, Nanos time) {
  Kernel kernel{.name = std::move(name), .duration = time};
  kernel.reads = {{.tensor = {0}, .end = Bytes{bytes}}};
  return kernel;
}

// Any network whose numbers are within `most`, a function of its arguments alone.
inline Network random_network(std::uint64_t seed, double most = 1) {
  const auto number = [&] { return static_cast<float>(most * next_signed(seed)); };
  Network network;
  for (Scale& scale : network.inputs) scale = {.mean = number(), .spread = number() < 0 ? 0.0f : 1.0f};
  network.output = {.mean = number(), .spread = 1};
  for (std::size_t at = 0; at < kLayers; ++at) {
    for (std::size_t count = kWidths[at] * kWidths[at + 1]; count > 0; --count)
      network.layers[at].weights.push_back(number());
    for (std::size_t count = kWidths[at + 1]; count > 0; --count) network.layers[at].biases.push_back(number());
  }
  return network;
}

}  // namespace spillway
