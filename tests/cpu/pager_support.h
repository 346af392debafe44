#pragma once

#include <array>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "runtime/pager.h"
#include "support.h"

namespace spillway {

inline PagerConfig small_config(EvictionMethod method, Bytes host = {}) {
  PagerConfig config;
  config.device = kBlockBytes * 40;
  config.host = host;
  config.ssd_directory = spill_directory();
  config.ssd_capacity = 512_MiB;
  config.method = method;
  config.check_least_budget = false;
  return config;
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
inline bool all_hold(const std::vector<std::byte*>& tensors, std::size_t first_seed) {
  for (std::size_t index = 0; index < tensors.size(); ++index)
    if (!holds(tensors[index], kLarge, first_seed + index)) return false;
  return true;
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

// Under a sanitizer both ways of evicting, one of them with host memory; all four where there is time (./test --long).
inline std::vector<Case> cases_here() {
  if (kSanitized && !has_time()) return {kCases[1], kCases[2]};
  return {kCases.begin(), kCases.end()};
}

class PagerTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    REQUIRE_PAGE_FAULTS();
    if (auto chosen = choose(GetParam().method); !chosen) GTEST_SKIP() << chosen.error().message;
  }
  static PagerConfig config() { return small_config(GetParam().method, GetParam().host); }
};

}  // namespace spillway
