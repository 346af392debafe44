#include "latency/model_file.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "latency/for_tests.h"

namespace spillway {
namespace {

LatencyModel two_classes(std::uint64_t seed, double most = 1) {
  return {.classes = {{.name = "*", .kernels = 12, .network = random_network(seed, most)},
                      {.name = "a \"conv\"", .kernels = 3, .network = random_network(seed + 1, most)}}};
}

TEST(ModelFile, SurvivesBeingWrittenAndRead) {
  EXPECT_TRUE(rc::check([] {
    const LatencyModel model =
        two_classes(*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::element(1e-30, 1e-3, 1.0, 1e9));
    const auto again = parse_latencies(to_json(model), "file");
    RC_ASSERT(again.has_value() && *again == model);
  }));
}

// With `from` replaced once by `to`.
std::string error_with(std::string_view from, std::string_view to) {
  std::string text = to_json(two_classes(1));
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const auto read = parse_latencies(text, "x.latencies");
  EXPECT_FALSE(read.has_value()) << to;
  const std::string message = read ? "" : read.error().message;
  EXPECT_TRUE(message.starts_with("cannot read latencies x.latencies: ")) << message;
  EXPECT_TRUE(message.contains("fit-latencies")) << "what to do: " << message;
  return message;
}

TEST(ModelFile, ErrorsSayWhatIsWrongAndWhere) {
  const auto says = [](const std::string& message, std::string_view what) {
    EXPECT_TRUE(message.contains(what)) << message;
  };
  says(error_with("spillway-latencies", "spillway-plan"), "'format'");
  says(error_with("\"version\": 1", "\"version\": 2"), "'version'");
  says(error_with("log_flops", "log_shapes"), "'features'");
  says(error_with("\"spillway\"", "\"spilway\""), "unknown key 'spilway'");
  says(error_with("\"*\"", "\"a \\\"conv\\\"\""), "twice");
  says(error_with("\"*\"", "\"+\""), "lacks the class '*'");
  says(error_with("\"kernels\": 12", "\"kernels\": -12"), "classes[0]: 'kernels'");
  says(error_with("\"inputs\": [", "\"inputs\": [[0, 1], "), "classes[0]: 'inputs' is no list of 16");
  says(error_with("\"output\": [", "\"output\": [1, "), "classes[0]: output: it is no list of 2");
  says(error_with("\"weights\": [", "\"weights\": [0,"), "classes[0]: layers[0]: weights: it is no list of 512");
  says(error_with("\"biases\": [", "\"biases\": [0,"), "classes[0]: layers[0]: biases: it is no list of 32");
  says(error_with("\"layers\": [", "\"layers\": [0, "), "'layers' is no list of 4");
  says(error_with("\"format\"", "format"), "not JSON");
  says(error_with("{", "[[[[[[[{"), "nests deeper");
}

TEST(ModelFile, NumbersAreFiniteAndSpreadsAreNotNegative) {
  LatencyModel model = two_classes(1);
  model.classes[1].network.layers[3].biases[0] = 2e9f;
  auto read = parse_latencies(to_json(model), "x");
  ASSERT_FALSE(read.has_value());
  EXPECT_TRUE(read.error().message.contains("classes[1]: layers[3]: biases: [0]")) << read.error().message;
  model = two_classes(1);
  model.classes[0].network.inputs[2].spread = -1;
  read = parse_latencies(to_json(model), "x");
  ASSERT_FALSE(read.has_value());
  EXPECT_TRUE(read.error().message.contains("classes[0]: inputs[2]: its spread")) << read.error().message;
}

TEST(ModelFile, WhatIsNotThereIsNamed) {
  const auto read = load_latencies("/nowhere/x.latencies");
  ASSERT_FALSE(read.has_value());
  EXPECT_TRUE(read.error().message.contains("/nowhere/x.latencies"));
}

}  // namespace
}  // namespace spillway
