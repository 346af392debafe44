#include "import/memory_snapshot.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <initializer_list>

#include "import/chakra.h"

namespace spillway {
namespace {

// Values as a pickle of protocol 2 has them.
std::string number(std::int64_t value) {
  std::string bytes = "\x8a\x08";
  for (int b = 0; b < 8; ++b) bytes += static_cast<char>(static_cast<std::uint64_t>(value) >> 8 * b & 0xff);
  return bytes;
}
std::string text(const std::string& value) {
  std::string bytes = "X";
  for (int b = 0; b < 4; ++b) bytes += static_cast<char>(value.size() >> 8 * b & 0xff);
  return bytes + value;
}
std::string list(std::initializer_list<std::string> values) {
  std::string bytes = "](";
  for (const std::string& value : values) bytes += value;
  return bytes + "e";
}
std::string dictionary(std::initializer_list<std::pair<std::string, std::string>> values) {
  std::string bytes = "}(";
  for (const auto& [key, value] : values) bytes += text(key) + value;
  return bytes + "u";
}

std::string frame(const std::string& file, int line, const std::string& name) {
  return dictionary({{"name", text(name)}, {"filename", text(file)}, {"line", number(line)}});
}
std::string event(const std::string& action, std::int64_t address, std::int64_t bytes, std::int64_t at,
                  const std::string& frames = "]") {
  return dictionary({{"action", text(action)},
                     {"addr", number(address)},
                     {"size", number(bytes)},
                     {"stream", number(0)},
                     {"time_us", number(at)},
                     {"frames", frames}});
}
std::string snapshot(std::initializer_list<std::string> devices) {
  std::string traces = "](";
  for (const std::string& events : devices) traces += events;
  return "\x80\x02" + dictionary({{"segments", "]"}, {"device_traces", traces + "e"}}) + ".";
}

std::string error_of(const std::string& pickle) {
  const auto memory = parse_memory_snapshot(pickle, "s.pickle");
  return memory ? std::string() : memory.error().message;
}

TEST(MemorySnapshot, HasWhatIsAskedForAndGivenBack) {
  const std::string calls =
      list({frame("??", 0, "at::empty"), frame("/x/site-packages/torch/nn/linear.py", 1, "forward"),
            frame("/home/me/train.py", 42, "step"), frame("/home/me/main.py", 7, "main")});
  const auto memory =
      parse_memory_snapshot(snapshot({list({event("segment_alloc", 512, 2 << 20, 3), event("alloc", 512, 700, 5, calls),
                                            event("free_requested", 512, 700, 9), event("free_completed", 512, 700, 10),
                                            dictionary({{"action", text("oom")}, {"device_free", number(1)}})}),
                                      list({event("alloc", 1024, 8, 6, list({frame("torch", 1, "x")}))})}),
                            "s.pickle");
  ASSERT_TRUE(memory) << memory.error().message;
  ASSERT_EQ(memory->size(), 3u);
  EXPECT_EQ((*memory)[0].bytes, 700);
  EXPECT_EQ((*memory)[0].at, 5000);
  EXPECT_EQ((*memory)[0].made_by, "train.py:42 step") << "the innermost that is not PyTorch's own";
  EXPECT_EQ((*memory)[1].bytes, -700);
  EXPECT_EQ((*memory)[1].at, 9000);
  EXPECT_EQ((*memory)[2].device, 1);
  EXPECT_TRUE((*memory)[2].made_by.empty());
}

TEST(MemorySnapshot, ErrorsNameTheEventAndWhatToDo) {
  EXPECT_TRUE(error_of("\x80\x02].").contains("s.pickle: it has no list 'device_traces'; call torch.cuda.memory"));
  EXPECT_TRUE(error_of(snapshot({"]", "]"})).contains("nothing is allocated in it"));
  EXPECT_TRUE(error_of(snapshot({"N"})).contains("device_traces[0] is no list"));
  EXPECT_TRUE(error_of(snapshot({"]", list({"N"})})).contains("device_traces[1][0]: 'action' is missing"));
  EXPECT_TRUE(
      error_of(snapshot({list({dictionary({{"action", text("alloc")}, {"addr", number(1)}, {"size", number(1)}})})}))
          .contains("'time_us' is missing"));
  EXPECT_TRUE(error_of(snapshot({list({event("alloc", 1, 1, -1)})})).contains("'time_us' is not from 0 to"));
  EXPECT_TRUE(error_of(snapshot({list({event("alloc", 1, -1, 1)})})).contains("'size' is not from 0 to 2^50"));
}

constexpr const char* kNode =
    R"({{"id":{},"name":"aten::relu","ctrl_deps":1,"inputs":{{"values":[[1,{},0,100,4,"cuda:1"]],"shapes":[],"types":[],"strides":[]}},)"
    R"("outputs":{{"values":[[2,{},0,100,4,"cuda:1"]],"shapes":[],"types":[],"strides":[]}},)"
    R"("attrs":[{{"name":"rf_id","value":{}}},{{"name":"tid","value":1}},)"
    R"({{"name":"op_schema","value":"aten::relu(Tensor self) -> Tensor"}}]}})";
constexpr const char* kRan =
    R"({{"ph":"X","cat":"cpu_op","name":"aten::relu","tid":7,"ts":{0},"dur":20,"args":{{"External id":{1},"Record function id":{1}}}}},)"
    R"({{"ph":"X","cat":"cuda_runtime","tid":7,"ts":{0},"dur":1,"args":{{"correlation":{1}}}}},)"
    R"({{"ph":"X","cat":"kernel","tid":0,"ts":{0},"dur":5,"args":{{"correlation":{1}}}}})";

// storage 6 = relu(5), 7 = relu(6), 8 = relu(7), each 100 microseconds after the one before, on cuda:1.
Result<Trace> import_with(const std::string& pickle, const std::string& base = R"("baseTimeNanoseconds":1000000000,)") {
  const auto nodes =
      parse_execution_trace(R"({"nodes":[)" + fmt::format(kNode, 5, 5, 6, 5) + "," + fmt::format(kNode, 6, 6, 7, 6) +
                                "," + fmt::format(kNode, 7, 7, 8, 7) + "]}",
                            "et");
  if (!nodes) return std::unexpected(nodes.error());
  auto kineto = parse_kineto("{" + base + R"("traceEvents":[)" + fmt::format(kRan, 100, 5) + "," +
                                 fmt::format(kRan, 200, 6) + "," + fmt::format(kRan, 300, 7) + "]}",
                             "profile");
  if (!kineto) return std::unexpected(kineto.error());
  auto memory = parse_memory_snapshot(pickle, "s.pickle");
  if (!memory) return std::unexpected(memory.error());
  return join_chakra(*nodes, with_snapshot(*std::move(kineto), *std::move(memory), "s.pickle"), "et", "some");
}

// Unix time is a second later than the profile's; storage 6 is freed while the third operator runs.
std::string made(std::int64_t second) {
  const std::string line = list({frame("a/train.py", 3, "f")});
  return snapshot({list({event("alloc", 512, 400, 1'000'105)}),
                   list({event("alloc", 512, 500, 1'000'105, line), event("alloc", 1536, 450, second),
                         event("free_requested", 512, 500, 1'000'310), event("alloc", 512, 400, 1'000'311)})});
}

TEST(MemorySnapshot, GivesTensorsTheirBytesNamesAndDeaths) {
  const auto trace = import_with(made(1'000'199));
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->kernels.size(), 3u);
  const Tensor& first = (*trace)[trace->kernels[0].writes[0].tensor];
  EXPECT_EQ(first.name, "train.py:3 f") << "of its own device";
  EXPECT_EQ(first.bytes, Bytes{500}) << "what was asked for, which is more than operators look at";
  EXPECT_EQ(trace->kernels[2].frees.size(), 3u) << "it outlives its last use, the second operator";
  EXPECT_EQ((*trace)[trace->kernels[1].writes[0].tensor].bytes, Bytes{450}) << "the time may be cut off";
}

TEST(MemorySnapshot, OfAnotherRunIsRefused) {
  const auto other = import_with(made(1'000'199), "");
  ASSERT_FALSE(other);
  EXPECT_TRUE(other.error().message.contains("of 3 tensors that its operators make, s.pickle has 0"))
      << other.error().message;
  const auto most = import_with(made(1'000'198));
  EXPECT_TRUE(most) << "two of three";
}

TEST(MemorySnapshot, ClocksThatNobodyHasAreRefused) {
  const auto kineto = parse_kineto(R"({"baseTimeNanoseconds":-1,"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a",)"
                                   R"("ts":1,"dur":1,"args":{"External id":1}}]})",
                                   "p.json");
  ASSERT_FALSE(kineto);
  EXPECT_TRUE(kineto.error().message.contains("p.json: 'baseTimeNanoseconds' is no time")) << kineto.error().message;
}

}  // namespace
}  // namespace spillway
