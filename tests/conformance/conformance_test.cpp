// The same programs under the same executor on every machine there is: each must keep the promises of the machine port,
// every byte a kernel reads must be what a run without limits reads, and the commands must be the same, link by link.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <thread>

#include "../cpu/support.h"
#include "analysis/lifetimes.h"
#include "arithmetic.h"
#include "executor/executor_script.h"
#include "machines/sim/layout.h"
#include "machines/sim/sim_machine.h"
#include "program.h"
#include "rules.h"
#include "trace/validate.h"

namespace spillway {
namespace {

struct Limits {
  std::uint32_t device, host;
  bool keep_dead = true;  // as real runs do
  bool keep_copies = false;
};
constexpr std::uint32_t kSsdBlocks = 400;

PageTable table_for(const Layout& layout, Limits limits) {
  PageTable table({kBlockBytes * limits.device, kBlockBytes * limits.host, kBlockBytes * kSsdBlocks});
  for (const Bytes bytes : layout.block_bytes) table.add_blocks(1, bytes);
  return table;
}

ExecutorOptions options_for(Limits limits) { return {.migration = {.keep_dead_blocks = limits.keep_dead}}; }

RuledMachine::Asked run_on_sim(const Trace& program, Limits limits) {
  const Lifetimes lifetimes = analyse_lifetimes(program);
  const Layout layout = plain_layout(program);
  const SimHardware hardware{.links = {.to_device = 1e9,
                                       .from_device = 1e9,
                                       .ssd_read = 1e8,
                                       .ssd_write = 1e8,
                                       .host_latency = Nanos{1000},
                                       .ssd_read_latency = Nanos{1000},
                                       .ssd_write_latency = Nanos{1000}},
                             .faults = {.latency = {}, .cost = Nanos{1000}},
                             .flash = {}};
  const auto blocks = static_cast<std::uint32_t>(layout.block_bytes.size());
  SimMachine sim(program, lifetimes, layout, hardware, std::vector<std::optional<Tier>>(blocks));
  RuledMachine ruled(sim, blocks, limits.device);
  sim.begin_iteration();
  Executor executor(table_for(layout, limits), options_for(limits));
  const auto ran =
      run_loop(ruled, executor, limits.keep_copies, kernels_in(program), [&] { return sim.iteration_over(); });
  CHECK(ran.has_value());
  return ruled.asked();
}

// Gives back in `limits` what the machine has for blocks: the copying path needs some of its frames for itself.
RuledMachine::Asked run_on_cpu(const Trace& program, Limits& limits, EvictionMethod method) {
  const Lifetimes lifetimes = analyse_lifetimes(program);
  const Layout layout = plain_layout(program);
  const auto blocks = static_cast<std::uint32_t>(layout.block_bytes.size());
  auto file = SpillFile::open(spill_directory(), kBlockBytes * kSsdBlocks);
  CHECK(file.has_value() && file->reserve(kSsdBlocks).has_value());
  auto machine = CpuMachine::make(
      {.device_frames = limits.device, .host_frames = limits.host, .range_blocks = blocks + 1, .method = method},
      *file);
  CHECK(machine.has_value());
  CpuMachine& cpu = **machine;
  limits.device = cpu.device_blocks();
  RuledMachine ruled(cpu, blocks + 1, limits.device);
  std::vector<std::uint64_t> sums;
  std::atomic<bool> ended{false};
  std::thread script([&] {
    Inbox& inbox = cpu.inbox();
    const StreamId stream = cpu.streams().of_this_thread();
    for (std::uint32_t at = 0; at < program.kernels.size(); ++at) {
      for (const TensorId tensor : lifetimes.births[at]) inbox.allocated(tensor, layout.tensors[tensor.value]);
      const auto accesses = layout.accesses(program, program.kernels[at]);
      const LaunchId launch{stream, at + 1};
      inbox.kernel_ready({launch, {at}, accesses}, true);
      sums.push_back(compute(accesses, at, [&](BlockId block) { return cpu.range().block(block.value); }));
      std::atomic<std::uint32_t>& launches = cpu.launches(stream);
      for (std::uint32_t seen = launches; seen != launch.serial; seen = launches) launches.wait(seen);
      inbox.kernel_done(launch);
      for (const TensorId tensor : lifetimes.deaths[at]) inbox.freed(tensor, layout.tensors[tensor.value]);
    }
    ended = true;
    // Messages are read before a fault is served: the loop has seen all when this block is there.
    cpu.range().block(blocks)[0] = std::byte{1};
  });
  bool last_touched = false;
  PageTable table = table_for(layout, limits);
  table.add_blocks(1, kBlockBytes);
  Executor executor(std::move(table), options_for(limits));
  const auto ran = run_loop(ruled, executor, limits.keep_copies, kernels_in(program), [&] {
    cpu.check_invariants();
    last_touched |= !ruled.asked().populated.empty() && ruled.asked().populated.back().value == blocks;
    return ended && last_touched;
  });
  CHECK(ran.has_value());
  script.join();
  EXPECT_EQ(sums, run_in_plain_memory(program, layout));
  // What kernels say they write is what they write.
  EXPECT_EQ(cpu.stats().dropped_clean(), kBlockBytes * ruled.asked().dropped_clean);
  EXPECT_EQ(cpu.stats().unseen_writes(), 0u);
  return ruled.asked();
}

void expect_same_commands(const RuledMachine::Asked& sim, RuledMachine::Asked cpu) {
  for (const Tier from : kTiers)
    for (const Tier to : kTiers)
      if (from != to) {
        EXPECT_EQ(sim.moved(from, to), cpu.moved(from, to)) << to_text(from) << " to " << to_text(to);
      }
  // The block that ends the run, and the dead one that it may have pushed out.
  cpu.populated.pop_back();
  if (cpu.discarded.size() == sim.discarded.size() + 1) cpu.discarded.pop_back();
  EXPECT_EQ(sim.populated, cpu.populated);
  EXPECT_EQ(sim.discarded, cpu.discarded);
}

TEST(Conformance, RandomProgramsAreValidTraces) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    const Trace program = random_program(seed, 40);
    const auto valid = validate(program, "program");
    RC_ASSERT(valid.has_value());
  }));
}

TEST(Conformance, SimKeepsThePromisesOfAMachine) {
  EXPECT_TRUE(rc::check([] {
    const auto device = *rc::gen::inRange<std::uint32_t>(20, 60);
    const auto host = *rc::gen::inRange<std::uint32_t>(0, 30);
    run_on_sim(random_program(*rc::gen::arbitrary<std::uint64_t>(), 40),
               {device, host, *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>()});
  }));
}

class CpuConformance : public testing::TestWithParam<EvictionMethod> {
 protected:
  void SetUp() override {
    REQUIRE_PAGE_FAULTS();
    if (auto chosen = choose(GetParam()); !chosen) GTEST_SKIP() << chosen.error().message;
  }
};
INSTANTIATE_TEST_SUITE_P(Paths, CpuConformance, testing::Values(EvictionMethod::move, EvictionMethod::copy),
                         [](const auto& param_info) { return std::string(to_text(param_info.param)); });

TEST_P(CpuConformance, ReadsWhatARunWithoutLimitsReadsAndIsAskedWhatSimIsAsked) {
  const std::uint64_t seeds = (kSanitized ? 2 : 3) * effort();
  std::uint64_t dropped_clean = 0, spilled = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    const Trace program = random_program(seed, 60);
    Limits limits{28 + static_cast<std::uint32_t>(seed) % 3 * 4, seed % 2 == 0 ? 0u : 10u, seed % 4 < 2, seed % 3 != 0};
    const auto cpu = run_on_cpu(program, limits, GetParam());
    dropped_clean += cpu.dropped_clean;
    spilled += !cpu.moved(Tier::device, Tier::ssd).empty();
    expect_same_commands(run_on_sim(program, limits), cpu);
  }
  EXPECT_GT(spilled, seeds / 2);
  EXPECT_GT(dropped_clean, kSanitized ? 0 : 20);
}

// Such a kernel pushes its own blocks out, and whether one that it touches next is still on its way is a matter of
// time.
TEST_P(CpuConformance, KernelsThatAreLargerThanTheDeviceReadWhatTheyShould) {
  for (std::uint64_t seed = 1; seed <= (kSanitized ? 2 : 3) * effort() / 2; ++seed) {
    SCOPED_TRACE(seed);
    Limits limits{20, seed % 2 == 0 ? 0u : 10u, true, seed % 3 != 0};
    run_on_cpu(random_program(seed, 40), limits, GetParam());
  }
}

}  // namespace
}  // namespace spillway
