// Files of latencies: any bytes are an error or a model that predicts valid times and survives being written and read.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "latency/model_file.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spillway;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto model = parse_latencies(text, "input");
  if (!model) {
    CHECK(!model.error().message.empty());
    return 0;
  }
  const auto again = parse_latencies(to_json(*model), "output");
  CHECK(again.has_value() && *again == *model);
  Trace trace{.name = "one", .source = "a fuzzer"};
  trace.tensors.push_back({.name = "a", .bytes = 1_GiB, .persistent = true});
  Kernel kernel{.name = "conv_1", .duration = Nanos{1}};
  kernel.reads = {{.tensor = {0}, .end = 1_GiB}};
  trace.kernels = {kernel};
  CHECK(validate(with_predicted_times(trace, *model), "predicted").has_value());
  return 0;
}
