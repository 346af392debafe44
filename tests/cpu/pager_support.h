#pragma once

#include <array>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "hook/pager/pager.h"
#include "support.h"

namespace spillway {

inline PagerConfig small_config(EvictionMethod method, Bytes host = {}) {
  return {.device = kBlockBytes * 40,
          .host = host,
          .ssd_directory = spill_directory(),
          .ssd_capacity = 512_MiB,
          .method = method,
          .check_least_budget = false};
}

inline std::unique_ptr<Pager> started(PagerConfig config) {
  auto pager = Pager::start(std::move(config));
  if (!pager) ADD_FAILURE() << pager.error().message;
  CHECK(pager.has_value());
  return std::move(*pager);
}

inline std::byte* granted(Pager& pager, std::size_t bytes) {
  auto memory = pager.allocate(bytes);
  if (!memory) ADD_FAILURE() << memory.error().message;
  CHECK(memory.has_value());
  return static_cast<std::byte*>(*memory);
}

// From now on what comes from the SSD leaves its copy there, until it changes: a plan, which is returned, says so for a
// tensor that is none.
inline std::shared_ptr<const RunPlan> keep_copies(Pager& pager) {
  auto plan = std::make_shared<RunPlan>();
  plan->plan.prefetches = {{{0}, {0}, true}};
  plan->kernels = 1;
  plan->starts = plan->ends = {true};
  plan->births.resize(1);
  plan->homes = {{{pager.range().blocks() - 1}, 1}};
  plan->rows = {{plan->homes.front(), {{0}}}};
  pager.adopt(plan);
  const StreamId stream = pager.this_stream();
  pager.kernel_ready(stream, {.plan = plan.get(), .kernel = {0}, .execution = {}}, {});
  pager.kernel_done(stream);
  return plan;
}

constexpr std::size_t kLarge = 30 << 20;
constexpr std::size_t kTensors = 6;

// Tensors that together are larger than the small configuration's budget, so that the first ones are away.
inline std::vector<std::byte*> more_than_fits(Pager& pager) {
  std::vector<std::byte*> tensors;
  for (std::size_t index = 0; index < kTensors; ++index) {
    tensors.push_back(granted(pager, kLarge));
    fill(tensors.back(), kLarge, index);
  }
  return tensors;
}

struct Case {
  EvictionMethod method;
  Bytes host;
};
inline std::string to_text(const Case& a) {
  return std::string(to_text(a.method)) + (a.host > Bytes{} ? "WithHost" : "");
}
inline void PrintTo(const Case& a, std::ostream* out) { *out << to_text(a); }
inline std::string name_of(const testing::TestParamInfo<Case>& info) { return to_text(info.param); }
inline const std::array kCases{Case{EvictionMethod::move, {}}, Case{EvictionMethod::copy, {}},
                               Case{EvictionMethod::move, 16_MiB}, Case{EvictionMethod::copy, 16_MiB}};

class PagerTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    REQUIRE_PAGE_FAULTS();
    if (auto chosen = choose(GetParam().method); !chosen) GTEST_SKIP() << chosen.error().message;
  }
  static PagerConfig config() { return small_config(GetParam().method, GetParam().host); }
};

}  // namespace spillway
