#include "report/show.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "trace/random_trace.h"

namespace spillway {
namespace {

RC_GTEST_PROP(Show, TheObjectHasItsStableFields, (std::uint32_t seed)) {
  const LoadedTrace loaded{.trace = random_trace(seed), .hash = "h"};
  const auto report = nlohmann::json::parse(show_json(loaded));
  RC_ASSERT(report["trace"]["hash"] == "h");
  RC_ASSERT(report["kernels"] == loaded.trace.kernels.size());
  RC_ASSERT(report["tensors"] == loaded.trace.tensors.size());
  RC_ASSERT(report["ideal_seconds"] > 0.0);
  RC_ASSERT(report["peak_live_bytes"] >= report["largest_working_set_bytes"]);
  RC_ASSERT(report["peak_live_bytes"] >= report["persistent_bytes"]);
  RC_ASSERT(report["inactive_periods"].is_number_unsigned());
  std::uint64_t of_kinds = 0;
  for (const auto& kind : report["tensors_by_kind"]) of_kinds += kind["tensors"].get<std::uint64_t>();
  RC_ASSERT(of_kinds == loaded.trace.tensors.size());
  for (const auto& moment : report["heaviest_moments"]) RC_ASSERT(moment["live_bytes"] <= report["peak_live_bytes"]);
  RC_ASSERT(report["heaviest_moments"][0]["live_bytes"] == report["peak_live_bytes"]);
}

TEST(Show, ForeignNamesDoNotReachTheTerminalAsTheyAre) {
  LoadedTrace loaded{.trace = random_trace(1), .hash = "h"};
  loaded.trace.name = "\x1b[31m";
  for (Kernel& kernel : loaded.trace.kernels) kernel.name = "\x1b[2J";
  EXPECT_FALSE(show_table(loaded).contains('\x1b'));
}

}  // namespace
}  // namespace spillway
