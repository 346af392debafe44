#include "import/chakra.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace spillway {
namespace {

// A tensor of 4-byte elements, all of its storage.
std::string tensor(int id, int storage, int elements, const std::string& device = "cpu") {
  return fmt::format(R"([{},{},0,{},4,"{}"])", id, storage, elements, device);
}

std::string node(int id, int parent, const std::string& name, const std::string& schema = "",
                 const std::string& inputs = "", const std::string& outputs = "") {
  return fmt::format(
      R"({{"id":{},"name":"{}","ctrl_deps":{},"inputs":{{"values":[{}],"shapes":[],"types":[],"strides":[]}},)"
      R"("outputs":{{"values":[{}],"shapes":[],"types":[],"strides":[]}},)"
      R"("attrs":[{{"name":"rf_id","value":{}}},{{"name":"tid","value":1}},{{"name":"op_schema","value":"{}"}}]}})",
      id, name, parent, inputs, outputs, id, schema);
}

std::string ran(int id, const std::string& name, int at, int took, const std::string& key = "Record function id") {
  return fmt::format(
      R"({{"ph":"X","cat":"cpu_op","name":"{}","tid":7,"ts":{},"dur":{},"args":{{"External id":{},"{}":{}}}}})", name,
      at, took, id + 100, key, id);
}

std::string memory(int at, int address, int bytes, int device = 0) {
  return fmt::format(
      R"({{"ph":"i","name":"[memory]","ts":{},"args":{{"Addr":{},"Bytes":{},"Device Type":{},"Device Id":0}}}})", at,
      address, bytes, device);
}

constexpr const char* kLinear = "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor";
constexpr const char* kAdd = "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)";
constexpr const char* kSum = "aten::sum(Tensor self) -> Tensor";

// x is filled, y = linear(x, w) with a view and a temporary within, z = sum(y), s += z; then w += a gradient.
std::vector<std::string> nodes(const std::string& device = "cpu") {
  const auto on = [&](int id, int storage, int elements) { return tensor(id, storage, elements, device); };
  return {
      node(1, 1, "[process]"), node(2, 1, "ProfilerStep#1"),
      node(10, 2, "aten::empty.memory_format", "aten::empty.memory_format(int[] size) -> Tensor", "[4,2]",
           on(50, 60, 8)),
      node(11, 2, "aten::fill_", "aten::fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)", on(50, 60, 8) + ",1",
           on(50, 60, 8)),
      node(12, 2, "aten::linear", kLinear, on(50, 60, 8) + "," + on(51, 61, 16), on(52, 62, 32)),
      node(13, 12, "aten::t", "aten::t(Tensor(a) self) -> Tensor(a)", on(51, 61, 16), on(53, 61, 16)),
      node(14, 12, "aten::zero_", "aten::zero_(Tensor(a!) self) -> Tensor(a!)", on(54, 63, 4), on(54, 63, 4)),
      node(15, 2, "aten::view", "aten::view(Tensor(a) self, int[] size) -> Tensor(a)", on(52, 62, 32), on(55, 62, 32)),
      node(16, 2, "autograd::engine::evaluate_function: SumBackward0"),
      node(17, 16, "aten::sum", kSum, on(55, 62, 32), on(56, 64, 1)), node(18, 2, "Optimizer.step#SGD.step"),
      node(19, 18, "aten::add_", kAdd, on(57, 65, 1) + "," + on(56, 64, 1), on(57, 65, 1)),
      // Where x was, another tensor is made.
      node(20, 18, "aten::sum", kSum, on(57, 65, 1), on(58, 60, 1))};
}

std::vector<std::string> events() {
  return {ran(10, "aten::empty.memory_format", 100, 5),
          ran(11, "aten::fill_", 110, 10),
          ran(12, "aten::linear", 130, 50),
          ran(13, "aten::t", 131, 5),
          ran(15, "aten::view", 185, 5),
          ran(17, "aten::sum", 200, 20),
          ran(19, "aten::add_", 230, 10),
          ran(20, "aten::sum", 250, 1),
          memory(102, 4096, 32),
          memory(140, 8192, 128),
          memory(235, 8192, -128),
          memory(260, 4096, -32)};
}

std::string joined(const std::vector<std::string>& parts) { return fmt::format("{}", fmt::join(parts, ",")); }

Result<Trace> import(const std::vector<std::string>& record, const std::vector<std::string>& profile) {
  const auto read = parse_execution_trace(R"({"schema":"1.1.1-chakra.0.0.4","nodes":[)" + joined(record) + "]}", "et");
  if (!read) return std::unexpected(read.error());
  const auto kineto = parse_kineto(R"({"traceEvents":[)" + joined(profile) + "]}", "profile");
  if (!kineto) return std::unexpected(kineto.error());
  return join_chakra(*read, *kineto, "et", "some");
}

std::vector<std::string> names_of(const Trace& trace, const std::vector<Access>& accesses) {
  std::vector<std::string> names;
  for (const Access& access : accesses) names.push_back(trace[access.tensor].name);
  return names;
}

using Names = std::vector<std::string>;

TEST(Chakra, KernelsAreTheOutermostOperatorsThatMakeOrWrite) {
  const auto trace = import(nodes(), events());
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->kernels.size(), 5u) << "no empty, no view, nothing within linear";
  EXPECT_EQ(trace->kernels[0].name, "aten::fill_");
  EXPECT_EQ(trace->kernels[1].name, "aten::linear");
  EXPECT_EQ(trace->kernels[1].duration, Nanos{50'000});
  EXPECT_EQ(trace->kernels[1].gap, Nanos{10'000});
  EXPECT_EQ(names_of(*trace, trace->kernels[1].reads), (Names{"storage60", "storage61"}));
  EXPECT_EQ(names_of(*trace, trace->kernels[1].writes), (Names{"storage62", "storage63"}));
  EXPECT_EQ(trace->kernels[1].phase, Phase::forward);
  EXPECT_EQ(trace->kernels[2].phase, Phase::backward);
  EXPECT_EQ(trace->kernels[3].phase, Phase::optimizer);
}

TEST(Chakra, StoragesLiveFromWhoMakesThemToTheAllocatorsFree) {
  const auto trace = import(nodes(), events());
  ASSERT_TRUE(trace) << trace.error().message;
  const auto named = [&](const std::string& name) { return std::ranges::count(trace->tensors, name, &Tensor::name); };
  EXPECT_EQ(named("storage60"), 2) << "an address has two tensors, one after the other";
  EXPECT_TRUE(trace->kernels[0].reads.empty()) << "fill_ does not look at what it fills";
  const auto freed = [&](std::size_t kernel) {
    Names names;
    for (const TensorId id : trace->kernels[kernel].frees) names.push_back((*trace)[id].name);
    return names;
  };
  EXPECT_EQ(freed(1), (Names{"storage63"})) << "a temporary";
  EXPECT_EQ(freed(3), (Names{"storage62", "storage64"})) << "freed while add_ runs, and of unknown end: last use";
  EXPECT_EQ(freed(4), (Names{"storage60", "storage60"})) << "the batch is freed after the last kernel";
}

TEST(Chakra, WhatIsGivenAsWeightOrChangedInPlaceOutlivesTheIteration) {
  const auto trace = import(nodes(), events());
  ASSERT_TRUE(trace) << trace.error().message;
  for (const Tensor& tensor : trace->tensors)
    EXPECT_EQ(tensor.persistent, tensor.name == "storage61" || tensor.name == "storage65") << tensor.name;
}

TEST(Chakra, AWeightMayFirstBeFilled) {
  auto record = nodes();
  record.push_back(node(9, 2, "aten::fill_", "aten::fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)",
                        tensor(51, 61, 16) + ",1", tensor(51, 61, 16)));
  auto profile = events();
  profile.push_back(ran(9, "aten::fill_", 90, 5));
  const auto trace = import(record, profile);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(names_of(*trace, trace->kernels[0].writes), (Names{"storage61"}));
  EXPECT_TRUE((*trace)[trace->kernels[0].writes[0].tensor].persistent);
}

TEST(Chakra, OnAGpuKernelsTakeTheTimeOfWhatTheyLaunch) {
  auto profile = events();
  profile.push_back(R"({"ph":"X","cat":"cuda_runtime","tid":7,"ts":135,"dur":1,"args":{"correlation":9}})");
  profile.push_back(R"({"ph":"X","cat":"kernel","tid":0,"ts":300,"dur":70,"args":{"correlation":9}})");
  profile.push_back(R"({"ph":"X","cat":"cuda_runtime","tid":7,"ts":210,"dur":1,"args":{"correlation":10}})");
  profile.push_back(R"({"ph":"X","cat":"kernel","tid":0,"ts":375,"dur":5,"args":{"correlation":10}})");
  const auto trace = import(nodes("cuda:0"), profile);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->kernels[0].duration, Nanos{0});
  EXPECT_EQ(trace->kernels[1].duration, Nanos{70'000});
  EXPECT_EQ(trace->kernels[2].duration, Nanos{5'000});
  EXPECT_EQ(trace->kernels[2].gap, Nanos{5'000});
  const auto none = import(nodes("cuda:0"), events());
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().message.contains("ProfilerActivity.CUDA")) << none.error().message;
}

TEST(Chakra, TheFirstKernelsGapBeginsWithItsStep) {
  auto profile = events();
  profile.push_back(ran(2, "ProfilerStep#1", 90, 300));
  const auto on_cpu = import(nodes(), profile);
  ASSERT_TRUE(on_cpu) << on_cpu.error().message;
  EXPECT_EQ(on_cpu->kernels[0].gap, Nanos{20'000});
  for (const auto& [id, called, begin, took] : {std::array{8, 20, 80, 100}, {9, 115, 205, 10}}) {
    profile.push_back(fmt::format(
        R"({{"ph":"X","cat":"cuda_runtime","tid":7,"ts":{},"dur":1,"args":{{"correlation":{}}}}})", called, id));
    profile.push_back(fmt::format(R"({{"ph":"X","cat":"kernel","tid":0,"ts":{},"dur":{},"args":{{"correlation":{}}}}})",
                                  begin, took, id));
  }
  const auto on_gpu = import(nodes("cuda:0"), profile);
  ASSERT_TRUE(on_gpu) << on_gpu.error().message;
  EXPECT_EQ(on_gpu->kernels[0].gap, Nanos{25'000}) << "the step before was not done on the GPU";
}

TEST(Chakra, WhatOnlyGivesMemoryAgainWritesNothing) {
  auto record = nodes();
  record.push_back(node(9, 2, "aten::empty", "aten::empty.out(int[] size, *, Tensor(a!) out) -> Tensor(a!)",
                        "[1]," + tensor(59, 69, 1), tensor(59, 69, 1)));
  auto profile = events();
  profile.push_back(ran(9, "aten::empty", 90, 5));
  const auto trace = import(record, profile);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->kernels.size(), 5u);
}

TEST(Chakra, OldProfilesAreJoinedByOrder) {
  auto profile = events();
  for (std::string& event : profile)
    if (const auto at = event.find("Record function id"); at != std::string::npos) event.replace(at, 18, "Other");
  auto record = nodes();
  std::erase_if(record, [](const std::string& one) {
    return one.contains("zero_") || one.contains("Step") || one.contains("process") || one.contains("evaluate") ||
           one.contains("Optimizer");
  });
  const auto trace = import(record, profile);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->kernels[1].duration, Nanos{50'000});
}

TEST(Chakra, FilesOfDifferentRunsAreRefused) {
  auto profile = events();
  profile[2] = ran(12, "aten::mm", 130, 50);
  const auto other = import(nodes(), profile);
  ASSERT_FALSE(other);
  EXPECT_TRUE(other.error().message.contains("node 12 is 'aten::linear', and in the profile 'aten::mm'"))
      << other.error().message;
  profile[2] = ran(99, "aten::linear", 130, 50);
  const auto lacks = import(nodes(), profile);
  ASSERT_FALSE(lacks);
  EXPECT_TRUE(lacks.error().message.contains("the profile lacks the operator 'aten::linear'")) << lacks.error().message;
}

TEST(Chakra, BadRecordsAreErrorsThatNameTheEntry) {
  const auto error_of = [](const std::string& record) {
    const auto read = parse_execution_trace(record, "et.json");
    return read ? std::string() : read.error().message;
  };
  EXPECT_TRUE(error_of("{").contains("et.json: not JSON")) << error_of("{");
  EXPECT_TRUE(error_of("{}").contains("no JSON object with 'nodes'")) << error_of("{}");
  EXPECT_TRUE(error_of(R"({"nodes":[{"id":-1}]})").contains("nodes[0]: 'id' is missing or no whole number"));
  EXPECT_TRUE(error_of("{\"nodes\":[" + node(5, 1, "a") + "," + node(5, 1, "b") + "]}").contains("the id 5"));
  EXPECT_TRUE(error_of("{\"nodes\":[" + node(5, 1, "a", "", R"([1,2,9000000000000000000,1,4,"cpu"])") + "]}")
                  .contains("more than 2^50"));
  EXPECT_TRUE(error_of("\x1f\x8b").contains("gunzip"));
  EXPECT_TRUE(error_of(std::string(100, '[')).contains("nests deeper"));
}

TEST(Chakra, TimesMustFit) {
  const auto kineto = parse_kineto(R"({"traceEvents":[{"ph":"X","cat":"cpu_op","ts":-1,"dur":1}]})", "p.json");
  ASSERT_FALSE(kineto);
  EXPECT_TRUE(kineto.error().message.contains("p.json: traceEvents[0]: 'ts' is no time")) << kineto.error().message;
}

TEST(Chakra, SchemasSayWhatIsWritten) {
  const auto arguments = arguments_of(
      "aten::f.out(Tensor self, int[2] sizes=[1, 1], *, Tensor(a -> *)[] list, Tensor(b!)? out) -> (Tensor(b!), "
      "Tensor)");
  ASSERT_EQ(arguments.size(), 4u);
  EXPECT_EQ(arguments[1].name, "sizes");
  EXPECT_EQ(arguments[2].name, "list");
  EXPECT_FALSE(arguments[2].written);
  EXPECT_EQ(arguments[3].name, "out");
  EXPECT_TRUE(arguments[3].written);
  EXPECT_TRUE(arguments_of("no operator").empty());
}

}  // namespace
}  // namespace spillway
