#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "latency/features.h"

namespace spillway {

inline constexpr std::size_t kHidden = 32, kLayers = 4;
// The widths before, between and behind the layers.
inline constexpr std::array<std::size_t, kLayers + 1> kWidths{kFeatureNames.size(), kHidden, kHidden, kHidden, 1};

// Normalises one input or the output: (value - mean) / spread. Without a spread it is no input: 0.
struct Scale {
  float mean = 0, spread = 0;
  friend bool operator==(const Scale&, const Scale&) = default;
};

struct Layer {
  std::vector<float> weights;  // by output, then by input
  std::vector<float> biases;   // by output
  friend bool operator==(const Layer&, const Layer&) = default;
};

// A multi-layer perceptron: rectifiers behind all layers but the last (TENSILE section IV-A). A value.
struct Network {
  std::array<Scale, kFeatureNames.size()> inputs;
  Scale output;
  std::array<Layer, kLayers> layers;  // of kWidths
  friend bool operator==(const Network&, const Network&) = default;
};

float evaluate(const Network& network, const Features& features);

struct Example {
  Features features;
  float output;
  float weight = 1;  // how many it stands for
};

// The one that is nearest to the examples in squares, as far as Adam finds it. The same examples give the same network.
// At least one example.
Network train(std::span<const Example> examples);

}  // namespace spillway
