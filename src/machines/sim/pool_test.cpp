#include "machines/sim/pool.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "machines/sim/simulate.h"
#include "plan/parameters.h"

namespace spillway {
namespace {

constexpr std::array kPoolParameters{ParameterSpec{"pool", 1, 0, 1, true, ""},
                                     ParameterSpec{"invalidate", 0, 0, 1, true, ""}};

// Kernel i makes tensor i, and the next one reads it.
Trace chain(const std::vector<Bytes>& bytes) {
  Trace trace{.name = "chain", .source = "test"};
  for (std::uint32_t id = 0; id < bytes.size(); ++id) {
    trace.tensors.push_back({.name = "t", .bytes = bytes[id], .kind = TensorKind::activation});
    Kernel kernel{.name = "k", .duration = Nanos{1000}, .writes = {{{id}, {}, bytes[id]}}};
    if (id > 0) kernel.reads = {{{id - 1}, {}, bytes[id - 1]}};
    trace.kernels.push_back(kernel);
  }
  return trace;
}

TEST(Pool, WhatIsFreeIsUsedAgain) {
  const Trace trace = chain({20_MiB, 20_MiB, 20_MiB, 20_MiB});
  const Layout layout = pooled_layout(trace, analyse_lifetimes(trace), 3);
  EXPECT_EQ(layout.block_bytes.size(), 20u) << "two are alive at a time";
  EXPECT_EQ(layout.tensors[2], layout.tensors[0]);
  EXPECT_EQ(layout.tensors[3], layout.tensors[1]);
}

TEST(Pool, TensorsShareBlocks) {
  const Trace trace = chain({3_MiB, 3_MiB});
  const Layout layout = pooled_layout(trace, analyse_lifetimes(trace), 1);
  EXPECT_EQ(layout.tensors[0], (BlockRange{{0}, 2}));
  EXPECT_EQ(layout.tensors[1], (BlockRange{{1}, 2}));
  EXPECT_EQ(layout.begins[1], 1_MiB);
  // Of the second tensor's bytes the first MiB lies in block 1, the others in block 2.
  Kernel kernel;
  kernel.reads = {{.tensor = {1}, .begin = 1_MiB, .end = 2_MiB}};
  EXPECT_EQ(layout.accesses(trace, kernel)[0].blocks, (BlockRange{{2}, 1}));
  kernel.reads[0].end = 3_MiB;
  kernel.reads[0].begin = Bytes{(1 << 20) - 1};
  EXPECT_EQ(layout.accesses(trace, kernel)[0].blocks, (BlockRange{{1}, 2}));
}

// At most 42 MiB are alive. But the 40 MiB do not fit where the 20 MiB were, so 62 MiB are touched.
TEST(Pool, WhatIsDeadMovesUnlessItIsDropped) {
  const Trace trace = chain({20_MiB, 2_MiB, 40_MiB});
  const Lifetimes lifetimes = analyse_lifetimes(trace);
  MachineModel model;
  model.device.memory = 44_MiB;
  model.host.memory = 1_GiB;
  model.link.to_device = model.link.from_device = {1'000'000'000};
  model.ssd.read = model.ssd.write = {500'000'000};
  model.fault.bytes = 64_KiB;
  const auto moved = [&](bool drops) {
    PolicyTraits traits{.parameters = Parameters(kPoolParameters)};
    traits.parameters.set("invalidate", drops ? 1.0 : 0.0);
    const auto result = simulate(trace, lifetimes, model, traits, nullptr);
    EXPECT_TRUE(result && result->feasible);
    return result->moved(Tier::device, Tier::host);
  };
  EXPECT_EQ(moved(true), Bytes{});
  EXPECT_GT(moved(false), Bytes{});
}

}  // namespace
}  // namespace spillway
