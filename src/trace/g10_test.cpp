#include "trace/g10.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "trace/compressed.h"

namespace spillway {
namespace {

const std::string kSample =
    "Kernel ID: 0, Name: Linear_Forward\n"
    "Parent OP ID:7; Name: Dot\n"
    "Execution Time: 12\n"
    "Input Tensors:\n"
    "tensor2 Is weight (global)?: 0, Size in byte: 64, Range:128--192\n"
    "tensor1 Is weight (global)?: 1, Size in byte: 32, Range:0--32\n"
    "tensor1 Is weight (global)?: 1, Size in byte: 32, Range:0--32\n"
    "Output Tensors:\n"
    "tensor0 Is weight (global)?: 0, Size in byte: 128, Range:0--128\n"
    "____________________________________________________________________\n"
    "Kernel ID: 1, Name: Linear_Backward_Weight\n"
    "Parent Layer ID:3; Name:Linear\n"
    "(1,2,3,4)\n"
    "Execution Time: 13\n"
    "Input Tensors:\n"
    "tensor0 Is weight (global)?: 0, Size in byte: 128, Range:0--128\n"
    "Output Tensors:\n"
    "tensor3 Is weight (global)?: 0, Size in byte: 32, Range:256--288\n"
    "____________________________________________________________________\n"
    "Kernel ID: 2, Name: Linear_Apply_Grad_Weight\n"
    "Execution Time: 6\n"
    "Input Tensors:\n"
    "tensor3 Is weight (global)?: 0, Size in byte: 32, Range:256--288\n"
    "tensor1 Is weight (global)?: 1, Size in byte: 32, Range:0--32\n"
    "Output Tensors:\n"
    "tensor1 Is weight (global)?: 1, Size in byte: 32, Range:0--32\n"
    "____________________________________________________________________\n";

void expect_error(const std::string& from, const std::string& to, const std::vector<std::string>& parts) {
  std::string text = kSample;
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  const auto trace = parse_g10(text.replace(at, from.size(), to), "some/kernels.config", "x");
  ASSERT_FALSE(trace) << to;
  EXPECT_TRUE(trace.error().message.contains("some/kernels.config")) << trace.error().message;
  for (const std::string& part : parts)
    EXPECT_TRUE(trace.error().message.contains(part)) << "no '" << part << "' in: " << trace.error().message;
}

TEST(G10Trace, KernelsHaveTheirTimePhaseAndTensors) {
  const auto trace = parse_g10(kSample, "x", "Sample-1");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->name, "Sample-1");
  EXPECT_EQ(trace->source, "g10");
  ASSERT_EQ(trace->kernels.size(), 3u);
  EXPECT_EQ(trace->kernels[0].duration, Nanos{10});
  EXPECT_EQ(trace->kernels[1].duration, Nanos{11});
  EXPECT_EQ(trace->kernels[2].duration, Nanos{5});
  EXPECT_EQ(trace->kernels[0].phase, Phase::forward);
  EXPECT_EQ(trace->kernels[1].phase, Phase::backward);
  EXPECT_EQ(trace->kernels[2].phase, Phase::optimizer);
  EXPECT_EQ(trace->kernels[0].reads, (std::vector<Access>{{{2}, {0}, {64}}, {{1}, {0}, {32}}})) << "each tensor once";
  EXPECT_EQ(trace->kernels[2].writes, (std::vector<Access>{{{1}, {0}, {32}}}));
}

TEST(G10Trace, KindsFollowFromTheFirstUseAndDeathsFromTheLast) {
  const auto trace = parse_g10(kSample, "x", "x");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->tensors[0].kind, TensorKind::activation);
  EXPECT_EQ(trace->tensors[1].kind, TensorKind::weight);
  EXPECT_TRUE(trace->tensors[1].persistent);
  EXPECT_EQ(trace->tensors[2].kind, TensorKind::input);
  EXPECT_EQ(trace->tensors[3].kind, TensorKind::gradient);
  EXPECT_EQ(trace->kernels[0].frees, (std::vector<TensorId>{{2}}));
  EXPECT_EQ(trace->kernels[1].frees, (std::vector<TensorId>{{0}}));
  EXPECT_EQ(trace->kernels[2].frees, (std::vector<TensorId>{{3}}));
}

TEST(G10Trace, WhatLoadDataWritesIsInput) {
  std::string text = kSample;
  const auto trace = parse_g10(text.replace(text.find("Linear_Forward"), 14, "LoadData_A0"), "x", "x");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->kernels[0].phase, Phase::forward);
  EXPECT_EQ(trace->tensors[0].kind, TensorKind::input);
}

TEST(G10Trace, NumbersWithGapsBecomeDenseIds) {
  std::string text = kSample;
  for (std::size_t at = 0; (at = text.find("tensor3", at)) != std::string::npos; ++at) text.replace(at, 7, "tensor900");
  const auto trace = parse_g10(text, "x", "x");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->tensors[3].name, "tensor900");
}

TEST(G10Trace, DamageIsNamedByLine) {
  expect_error("Execution Time: 12", "Execution Time: fast", {"line 3", "cycles"});
  expect_error("Execution Time: 12", "Execution Time: -12", {"line 3"});
  expect_error("Execution Time: 12", "Execution Time: 99999999999999999999", {"line 3"});
  expect_error("Execution Time: 12\n", "", {"kernel 0", "Execution Time"});
  expect_error("Kernel ID: 1,", "Kernel ID: 2,", {"line 11", "kernel 2 follows kernel 0"});
  expect_error("Kernel ID: 0,", "Kernel 0,", {"line 1", "kernels.config"});
  expect_error("Size in byte: 64", "Size in byte: 65", {"line 5", "tensor2"});
  expect_error("(global)?: 0", "(global)?: 2", {"line 5"});
  expect_error("Size in byte: 128, Range:0--128\nOutput", "Size in byte: 120, Range:0--120\nOutput",
               {"tensor0", "another size"});
  expect_error("Input Tensors:\n", "", {"line 4", "before 'Input Tensors:'"});
  expect_error("Parent OP", "Child OP", {"line 2", "Child OP"});
}

TEST(G10Trace, AFileThatIsCutBehindAnyLineOfAKernelIsRefused) {
  const std::size_t last = kSample.rfind("Kernel ID:"), end = kSample.rfind("____\n");
  for (std::size_t at = kSample.find('\n', last); at < end; at = kSample.find('\n', at + 1)) {
    const auto trace = parse_g10(kSample.substr(0, at + 1), "x", "x");
    ASSERT_FALSE(trace) << kSample.substr(0, at + 1);
    EXPECT_TRUE(trace.error().message.contains("cut off")) << trace.error().message;
  }
}

TEST(G10Trace, AnEmptyFileHasNoKernels) {
  const auto trace = parse_g10("", "x", "x");
  ASSERT_FALSE(trace);
  EXPECT_TRUE(trace.error().message.contains("no kernels"));
}

TEST(G10Trace, APathIsTheFileOrItsFolderCompressedOrNot) {
  const std::string folder = testing::TempDir() + "g10-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder + "/BERT-1");
  const auto none = import_g10(folder + "/BERT-1");
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().message.contains("kernels.config.zst"));
  const auto packed = compress_zstd(kSample);
  ASSERT_TRUE(packed && write_file(folder + "/BERT-1/kernels.config.zst", *packed));
  for (const char* path : {"/BERT-1", "/BERT-1/", "/BERT-1/kernels.config.zst"}) {
    const auto trace = import_g10(folder + path);
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_EQ(trace->name, "BERT-1") << path;
  }
  ASSERT_TRUE(write_file(folder + "/BERT-1/kernels.config", kSample));
  EXPECT_TRUE(import_g10(folder + "/BERT-1/kernels.config"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace spillway
