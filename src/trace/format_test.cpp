#include "trace/format.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "trace/compressed.h"
#include "trace/random_trace.h"

namespace spillway {
namespace {

class TraceFiles : public testing::Test {
 protected:
  TraceFiles() : folder_(testing::TempDir() + "traces-" + std::to_string(::getpid())) {
    std::filesystem::create_directory(folder_);
  }
  ~TraceFiles() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

RC_GTEST_PROP(TraceFormat, ReadsWhatItWrites, (std::uint32_t seed)) {
  const Trace trace = random_trace(seed);
  const auto json = to_json(trace);
  RC_ASSERT(json.has_value());
  const auto back = parse_trace(*json, "memory");
  if (!back) RC_FAIL(back.error().message);
  RC_ASSERT(back->trace == trace);
}

TEST_F(TraceFiles, TheVersionIsTheOldestThatHasAllKeys) {
  Trace trace = random_trace(1);
  trace.estimated.clear();
  for (Kernel& kernel : trace.kernels) {
    kernel.replay.reset();
    kernel.shapes.clear();
  }
  const auto is_version = [&](int version) {
    const auto json = to_json(trace);
    return json && json->contains(fmt::format("\"version\":{},", version));
  };
  EXPECT_TRUE(is_version(1));
  trace.kernels.back().shapes = {{2, 3}};
  EXPECT_TRUE(is_version(2));
  trace.kernels.back().shapes.clear();
  trace.kernels.back().replay.emplace();
  EXPECT_TRUE(is_version(2));
  trace.estimated = "roofline, a100";
  EXPECT_TRUE(is_version(3));
}

TEST_F(TraceFiles, CompressedAndPlainHaveTheSameHashAndContent) {
  const Trace trace = random_trace(1);
  ASSERT_TRUE(save_trace(path("a.trace"), trace));
  ASSERT_TRUE(save_trace(path("a.trace.zst"), trace));
  EXPECT_LT(std::filesystem::file_size(path("a.trace.zst")), std::filesystem::file_size(path("a.trace")));
  const auto plain = load_trace(path("a.trace")), packed = load_trace(path("a.trace.zst"));
  ASSERT_TRUE(plain && packed);
  EXPECT_EQ(plain->hash, packed->hash);
  EXPECT_EQ(plain->trace, trace);
  EXPECT_EQ(packed->trace, trace);
}

TEST_F(TraceFiles, TheHashIsXxh3Of128BitsAndDependsOnEveryByte) {
  const auto json = to_json(random_trace(1));
  ASSERT_TRUE(json);
  const auto once = parse_trace(*json, "x"), again = parse_trace(*json, "x"), other = parse_trace(*json + " ", "x");
  ASSERT_TRUE(once && again && other);
  EXPECT_EQ(once->hash.size(), 32u);
  EXPECT_EQ(once->hash, again->hash);
  EXPECT_NE(once->hash, other->hash);
}

TEST_F(TraceFiles, AnInvalidTraceIsNotWritten) {
  Trace trace = random_trace(1);
  trace.tensors[0].bytes = {};
  EXPECT_FALSE(save_trace(path("bad.trace"), trace));
  EXPECT_FALSE(std::filesystem::exists(path("bad.trace")));
}

TEST_F(TraceFiles, ANameThatIsNotUtf8IsNotWritten) {
  Trace trace = random_trace(1);
  trace.kernels[0].name = "\xff";
  EXPECT_FALSE(save_trace(path("bad.trace"), trace));
  EXPECT_FALSE(std::filesystem::exists(path("bad.trace")));
}

TEST_F(TraceFiles, NamesWithQuotesControlsAndOtherAlphabetsSurvive) {
  Trace trace = random_trace(1);
  trace.name = "a \"quoted\"\n\t\\name \x01 ▲ 模型";
  trace.kernels[0].name = "aten::conv2d";
  const auto json = to_json(trace);
  ASSERT_TRUE(json);
  const auto back = parse_trace(*json, "x");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->trace.name, trace.name);
}

TEST_F(TraceFiles, ANameThatPromisesCompressionMustKeepIt) {
  const auto json = to_json(random_trace(1));
  ASSERT_TRUE(json && write_file(path("plain.trace.zst"), *json));
  const auto loaded = load_trace(path("plain.trace.zst"));
  ASSERT_FALSE(loaded);
  EXPECT_TRUE(loaded.error().message.contains("plain.trace.zst"));
}

TEST_F(TraceFiles, CompressionIsSeenWithoutTheName) {
  const auto json = to_json(random_trace(1));
  ASSERT_TRUE(json);
  const auto packed = compress_zstd(*json);
  ASSERT_TRUE(packed && write_file(path("odd.name"), *packed));
  EXPECT_TRUE(load_trace(path("odd.name")));
}

}  // namespace
}  // namespace spillway
