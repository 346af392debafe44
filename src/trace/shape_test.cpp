#include "trace/shape.h"

#include <gtest/gtest.h>

#include "trace/random_trace.h"

namespace spillway {
namespace {

TEST(TraceShape, KnowsNoTimesAndNoNamesOfTensors) {
  const Trace trace = random_trace(7);
  Trace other = trace;
  other.name = "other";
  other.kernels[0].duration += Nanos{5};
  other.kernels[1].gap += Nanos{5};
  other.tensors[0].name = "renamed";
  EXPECT_EQ(shape_of(other), shape_of(trace));
  EXPECT_EQ(difference(shape_of(other), shape_of(trace)), "");
}

TEST(TraceShape, SaysWhatIsDifferent) {
  const Trace trace = random_trace(7);
  const TraceShape shape = shape_of(trace);
  const auto difference_of = [&](auto change) {
    Trace other = trace;
    change(other);
    return difference(shape_of(other), shape);
  };
  const std::size_t kernels = trace.kernels.size(), tensors = trace.tensors.size();
  EXPECT_EQ(difference_of([](Trace& other) { other.kernels.pop_back(); }),
            "it has " + std::to_string(kernels - 1) + " kernels, not " + std::to_string(kernels));
  EXPECT_EQ(difference_of([](Trace& other) { other.kernels[2].name += "2"; }), "it has as many kernels, but others");
  EXPECT_EQ(difference_of([](Trace& other) { other.tensors.push_back(other.tensors.back()); }),
            "it has the same kernels, but " + std::to_string(tensors + 1) + " tensors, not " + std::to_string(tensors));
  const std::string otherwise = "it has the same kernels and as many tensors, but uses them otherwise";
  EXPECT_EQ(difference_of([](Trace& other) { other.tensors[0].bytes += Bytes{1}; }), otherwise);
  EXPECT_EQ(difference_of([](Trace& other) { other.tensors[0].persistent ^= true; }), otherwise);
  EXPECT_EQ(difference_of([](Trace& other) { std::swap(other.kernels[0].reads, other.kernels[0].writes); }), otherwise);
  EXPECT_EQ(difference_of([](Trace& other) { other.kernels[1].frees.push_back({0}); }), otherwise);
}

}  // namespace
}  // namespace spillway
