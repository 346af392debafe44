// Plan files and the validator: any bytes are an error or a plan, a plan survives being written and read again, and the
// validator answers for every plan.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "analysis/lifetimes.h"
#include "base/check.h"
#include "plan/plan_file.h"
#include "plan/validate.h"

namespace {

using namespace spillway;

// Six kernels, which can all be replayed; tensor 0 rests twice, tensor 1 dies, tensor 2 shares a block with others.
Trace small_trace() {
  Trace trace{.name = "small", .source = "fuzz"};
  trace.tensors = {{.name = "w", .bytes = 1_MiB, .persistent = true},
                   {.name = "a", .bytes = 2_MiB},
                   {.name = "s", .bytes = 1_KiB, .persistent = true}};
  for (const std::uint32_t used : {0u, 1u, 1u, 0u, 2u, 2u})
    trace.kernels.push_back({.name = "k",
                             .duration = Nanos{1'000},
                             .writes = {{{used}, {}, trace.tensors[used].bytes}},
                             .replay = Replayable{}});
  return trace;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto plan = parse_plan({reinterpret_cast<const char*>(data), size}, "input");
  if (!plan) {
    CHECK(!plan.error().message.empty());
    return 0;
  }
  const auto again = parse_plan(to_json(*plan), "output");
  CHECK(again.has_value() && again->evictions == plan->evictions && again->prefetches == plan->prefetches);
  static const Trace trace = small_trace();
  static const Lifetimes lifetimes = analyse_lifetimes(trace);
  MachineModel machine;
  machine.host.memory = 1_MiB;
  machine.ssd.capacity = 1_MiB;
  const auto valid = validate_plan(*plan, trace, plan->trace_hash, lifetimes, machine);
  CHECK(valid || !valid.error().message.empty());
  return 0;
}
