#include "import/dtr.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

std::string constant(const std::string& name, const std::string& bytes) {
  return R"({"INSTRUCTION":"CONSTANT","NAME":")" + name + "\"}\n" + R"({"INSTRUCTION":"MEMORY","MEMORY":")" + bytes +
         R"(","NAME":")" + name + "\"}\n";
}
std::string call(const std::string& name, const std::string& arguments, const std::string& result,
                 const std::string& bytes, const std::string& time, const std::string& alias = "-1") {
  return R"({"ARGS":[)" + arguments + R"(],"INSTRUCTION":"CALL","NAME":")" + name + R"(","RESULT":[")" + result +
         R"("],"TIME":")" + time + "\"}\n" + R"({"INSTRUCTION":"MEMORY","MEMORY":")" + bytes + R"(","NAME":")" +
         result + "\"}\n" + R"({"ALIAS":")" + alias + R"(","INSTRUCTION":"ALIAS","NAME":")" + result + "\"}\n";
}
std::string release(const std::string& name) { return R"({"INSTRUCTION":"RELEASE","NAME":")" + name + "\"}\n"; }

const std::string kLog =
    constant("old", "7") + R"({"ANNOTATION": "START", "INSTRUCTION": "ANNOTATE"})" + "\n" + constant("w", "100") +
    constant("x", "40") + release("old") + call("mm", R"("x","w")", "a", "64", "1000") +
    call("view", R"("a")", "v", "64", "30", "0") + release("a") + release("x") +
    R"({"ARGS":["v"],"INSTRUCTION":"MUTATE","MUTATE":[0],"NAME":"relu_","TIME":"500"})" + "\n" +
    R"({"ANNOTATION":"BACKWARD","INSTRUCTION":"ANNOTATE"})" + "\n" + R"({"DST":"c","INSTRUCTION":"COPY","SRC":"v"})" +
    "\n" + release("v") + call("mm_backward", R"("c","w")", "g", "100", "2000") + release("c") +
    call("norm", R"("g")", "n", "4", "10") + release("n");

Result<Trace> changed(const std::string& from, const std::string& to) {
  std::string log = kLog;
  const std::size_t at = log.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return parse_dtr(log.replace(at, from.size(), to), "some.log", "some");
}

void expect_error(const std::string& from, const std::string& to, const std::string& part) {
  const auto trace = changed(from, to);
  ASSERT_FALSE(trace) << from;
  EXPECT_TRUE(trace.error().message.contains(part)) << trace.error().message;
  EXPECT_TRUE(trace.error().message.contains("some.log")) << trace.error().message;
}

TEST(DtrLog, CallsAreKernelsAndViewsAreTimeOfTheHost) {
  const auto trace = parse_dtr(kLog, "some.log", "some");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->kernels.size(), 4u);
  EXPECT_EQ(trace->kernels[0].name, "mm");
  EXPECT_EQ(trace->kernels[0].duration, Nanos{1000});
  EXPECT_EQ(trace->kernels[1].name, "relu_");
  EXPECT_EQ(trace->kernels[1].gap, Nanos{30});
  EXPECT_EQ(trace->kernels[1].writes, trace->kernels[0].writes) << "a view is the tensor that it shows";
  EXPECT_EQ(trace->kernels[1].phase, Phase::forward);
  EXPECT_EQ(trace->kernels[2].phase, Phase::backward);
}

TEST(DtrLog, StoragesDieWithTheirLastName) {
  const auto trace = parse_dtr(kLog, "some.log", "some");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->tensors.size(), 5u) << "what is released before START's first kernel is left out";
  EXPECT_EQ(trace->tensors[0].name, "w");
  EXPECT_TRUE(trace->tensors[0].persistent);
  EXPECT_EQ(trace->tensors[1].kind, TensorKind::input);
  EXPECT_EQ(trace->tensors[2].kind, TensorKind::activation);
  EXPECT_EQ(trace->tensors[3].kind, TensorKind::gradient);
  EXPECT_EQ(trace->tensors[4].kind, TensorKind::workspace);
  EXPECT_EQ(trace->kernels[0].frees, (std::vector<TensorId>{{1}}));
  EXPECT_TRUE(trace->kernels[1].frees.empty()) << "its copy still names it";
  EXPECT_EQ(trace->kernels[2].frees, (std::vector<TensorId>{{2}}));
  EXPECT_EQ(trace->kernels[3].frees, (std::vector<TensorId>{{3}, {4}})) << "the gradient lives on to the end";
}

TEST(DtrLog, ErrorsNameTheLineAndWhatToDo) {
  expect_error(R"(["x","w"])", R"(["x","y"])", "line 9: 'y' is used before the log makes it");
  expect_error(R"("TIME":"1000")", R"("TIME":"1e3")", "line 9: 'TIME' is no whole number");
  expect_error(R"("TIME":"1000")", R"("TIME":1000)", "line 9: 'TIME' is missing or no text");
  expect_error(R"("MUTATE":[0])", R"("MUTATE":[1])", "names an argument that there is not");
  expect_error(R"("RESULT":["v"])", R"("RESULT":["b"])", "MEMORY of 'v' does not follow");
  expect_error(R"({"ALIAS":"0")", R"({"ALIAS":"1")", "an alias of an argument that there is not");
  expect_error(R"("INSTRUCTION":"COPY")", R"("INSTRUCTION":"PIN")", "the instruction 'PIN' is none that we read");
  expect_error(R"({"DST")", R"(["DST")", "no JSON object");
  expect_error(R"(["x","w"])", R"(["x",1])", "holds something else");
  expect_error(R"(["x","w"])", R"([["x","w"]])", "nests deeper");
}

TEST(DtrLog, EndsWithACallsResults) {
  const auto trace = parse_dtr(kLog.substr(0, kLog.find("{\"ALIAS\"")), "some.log", "some");
  ASSERT_FALSE(trace);
  EXPECT_TRUE(trace.error().message.contains("ends before a CALL's last MEMORY and ALIAS")) << trace.error().message;
}

}  // namespace
}  // namespace spillway
