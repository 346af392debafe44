#include "latency/network.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spillway {
namespace {

// One path of ones from the first input to the output, which gets 0.5 on the way.
Network one_path() {
  Network network;
  network.inputs[0] = {.mean = 2, .spread = 4};
  network.output = {.mean = 1, .spread = 3};
  for (std::size_t at = 0; at < kLayers; ++at) {
    network.layers[at].weights.resize(kWidths[at] * kWidths[at + 1]);
    network.layers[at].biases.resize(kWidths[at + 1]);
    network.layers[at].weights[0] = 1;
  }
  network.layers.back().biases[0] = 0.5;
  return network;
}

TEST(Network, IsEvaluatedLayerByLayer) {
  EXPECT_EQ(evaluate(one_path(), {10}), (2 + 0.5f) * 3 + 1);
  EXPECT_EQ(evaluate(one_path(), {0}), 0.5f * 3 + 1) << "a rectifier stops what is negative";
  EXPECT_EQ(evaluate(one_path(), {10, 77, 77, 77}), 8.5f) << "without a spread it is no input";
  Network second = one_path();
  second.layers[1].weights[kHidden] = 1;  // from the first to the second of the next layer
  second.layers[2].weights[1] = 1;        // and back
  EXPECT_EQ(evaluate(second, {10}), (4 + 0.5f) * 3 + 1) << "weights are by output, then by input";
}

TEST(Network, LearnsAPowerLawAndWhatLiesBetween) {
  const auto law = [](double x, double y) { return static_cast<float>(0.5 * x - 0.25 * y + 1); };
  std::vector<Example> examples;
  for (int x = 0; x < 8; ++x)
    for (int y = 0; y < 4; ++y)
      examples.push_back({.features = {static_cast<float>(x), static_cast<float>(y)}, .output = law(x, y)});
  const Network network = train(examples);
  for (const Example& one : examples) EXPECT_NEAR(evaluate(network, one.features), one.output, 0.05);
  EXPECT_NEAR(evaluate(network, {3.5, 1.5}), law(3.5, 1.5), 0.05);
}

TEST(Network, FollowsWhatIsNoLine) {
  std::vector<Example> examples;
  for (int x = 0; x <= 20; ++x)
    examples.push_back({.features = {static_cast<float>(x)}, .output = std::abs(static_cast<float>(x) - 10)});
  const Network network = train(examples);
  EXPECT_NEAR(evaluate(network, {0}), 10, 0.5);
  EXPECT_NEAR(evaluate(network, {10}), 0, 0.5);
  EXPECT_NEAR(evaluate(network, {20}), 10, 0.5);
}

TEST(Network, ComesNearestToWhatStandsForMost) {
  const std::vector<Example> examples{{.features = {1}, .output = 0, .weight = 99},
                                      {.features = {1}, .output = 1, .weight = 1}};
  EXPECT_NEAR(evaluate(train(examples), {1}), 0.01, 0.005);
}

TEST(Network, OfOneExampleSaysThat) {
  const Network network = train({{{.features = {5, 6}, .output = 42}}});
  EXPECT_EQ(evaluate(network, {5, 6}), 42);
  EXPECT_EQ(evaluate(network, {0, 99}), 42);
}

TEST(Network, TheSameExamplesGiveTheSame) {
  std::vector<Example> examples;
  for (int at = 0; at < 5; ++at)
    examples.push_back({.features = {static_cast<float>(at)}, .output = static_cast<float>(at * at)});
  EXPECT_EQ(train(examples), train(examples));
  examples[2].output += 1;
  EXPECT_NE(train(examples), train(std::span(examples).first(4)));
}

}  // namespace
}  // namespace spillway
