// The same programs as in conformance_test.cpp on the CUDA machine, over a driver without a GPU: several streams,
// launches and frees in flight. Each must keep the promises of the machine port, and every byte a kernel reads must be
// what a run without limits reads.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <future>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <tuple>

#include "../cpu/support.h"
#include "analysis/lifetimes.h"
#include "arithmetic.h"
#include "executor/executor_script.h"
#include "hook/cuda/gated_launches.h"
#include "machines/cuda/cuda_machine.h"
#include "machines/sim/layout.h"
#include "program.h"
#include "rules.h"
#include "strict_driver.h"

namespace spillway::on_cuda {
namespace {

constexpr std::uint32_t kSsdBlocks = 400;

const CudaDriver& driver() {
  static const CudaDriver loaded = [] {
    auto driver = load_cuda_driver(SPILLWAY_STRICT_CUDA);
    CHECK(driver.has_value());
    return *driver;
  }();
  return loaded;
}

CudaShim& shim() {
  static CudaShim& loaded = [] -> CudaShim& {
    ::setenv(kCudaDriverVariable, SPILLWAY_STRICT_CUDA, 1);
    void* const library = ::dlopen(SPILLWAY_CUDA_SHIM, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != nullptr);
    return *reinterpret_cast<CudaShim* (*)()>(::dlsym(library, kCudaShimSymbol))();
  }();
  return loaded;
}
// What a script calls: the shim's function.
template <class Function>
Function script_function(const char* name) {
  static void* const library = (shim(), ::dlopen(SPILLWAY_CUDA_SHIM, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD));
  return reinterpret_cast<Function>(::dlsym(library, name));
}

StrictCuda& strict_cuda() {
  static StrictCuda& knobs =
      *reinterpret_cast<StrictCudaOf>(::dlsym(::dlopen(SPILLWAY_STRICT_CUDA, RTLD_NOW), "strict_cuda"))();
  return knobs;
}

struct Limits {
  std::uint32_t device, host;
  bool keep_dead = true;
  bool keep_copies = false;
  std::uint32_t streams = 1;  // of each thread
  std::uint32_t threads = 1;  // with a program of its own each
  bool tells_writes = true;   // false: the executor believes that kernels only read
  bool through_shim = false;  // what launches touch is found by the shim; else it is told
  bool graphs = false;        // some kernels are captured, and launched together; through the shim only
  bool strict = false;        // Note [Strict runs]
  bool reserves_all = true;   // false: of the SSD, only what the other tiers have no room for
  Bytes block_bytes = kBlockBytes;
};

// As a heap does it: tensors get the lowest blocks in which none lives, those of the dead above all. Blocks may be of
// any size: a program has them of kBlockBytes.
Layout layout_from(std::uint32_t first, const Trace& program, const Lifetimes& lifetimes) {
  Layout layout;
  layout.tensors.resize(program.tensors.size());
  std::vector<bool> taken;
  const auto fits = [&](std::uint32_t at, std::uint32_t count) {
    for (std::uint32_t block = at; block < at + count; ++block)
      if (block < taken.size() && taken[block]) return false;
    return true;
  };
  for (std::size_t kernel = 0; kernel < program.kernels.size(); ++kernel) {
    for (const TensorId tensor : lifetimes.births[kernel]) {
      const auto count = static_cast<std::uint32_t>(program[tensor].bytes.value / kBlockBytes.value);
      std::uint32_t at = 0;
      while (!fits(at, count)) ++at;
      taken.resize(std::max<std::size_t>(taken.size(), at + count));
      for (std::uint32_t block = at; block < at + count; ++block) taken[block] = true;
      layout.tensors[tensor.value] = {{first + at}, count};
    }
    for (const TensorId tensor : lifetimes.deaths[kernel])
      for (std::uint32_t block = 0; block < layout.tensors[tensor.value].count; ++block)
        taken[layout.tensors[tensor.value].first.value - first + block] = false;
  }
  layout.block_bytes.assign(first + taken.size(), kBlockBytes);
  return layout;
}

struct Program {
  Trace trace;
  Lifetimes lifetimes = analyse_lifetimes(trace);
  Layout layout;
  TensorId first;  // of all threads' tensors
};

// One launch on the device: what it computes goes to `sum`.
struct Computation {
  std::vector<BlockAccess> accesses;
  std::uint64_t kernel = 0;
  CUdeviceptr begin = 0;
  std::uint64_t sum = 0;
  Bytes block_bytes = kBlockBytes;

  CUdeviceptr address(BlockId block) const { return begin + block.value * block_bytes.value; }
};

// Its parameters are the computation, and where the tensors begin that it touches.
constexpr std::size_t kMostTensors = 12;
StrictKernel& compute_kernel() {
  static StrictKernel kernel{
      .name = "compute",
      .parameters = std::vector<std::size_t>(1 + kMostTensors, sizeof(void*)),
      .run =
          [](void** parameters) {
            Computation& one = **static_cast<Computation**>(parameters[0]);
            one.sum = compute(
                one.accesses, one.kernel,
                [&](BlockId block) { return reinterpret_cast<std::byte*>(one.address(block)); }, one.block_bytes);
          },
      .memory =
          [](void** parameters) {
            const Computation& one = **static_cast<Computation**>(parameters[0]);
            std::vector<StrictKernel::Memory> touched;
            for (const BlockAccess& access : one.accesses)
              touched.push_back({one.address(access.blocks.first), access.blocks.count * one.block_bytes.value});
            return touched;
          },
  };
  return kernel;
}

// The kernel is given where these tensors are; what it touches, the computation says.
CUresult launch(decltype(&::cuLaunchKernel) call, CUstream stream, Computation& one,
                std::span<const BlockAccess> given) {
  CHECK(given.size() <= kMostTensors);
  std::array<CUdeviceptr, 1 + kMostTensors> values{reinterpret_cast<CUdeviceptr>(&one)};
  for (std::size_t at = 0; at < given.size(); ++at) values[1 + at] = one.address(given[at].blocks.first);
  std::array<void*, values.size()> parameters;
  for (std::size_t at = 0; at < values.size(); ++at) parameters[at] = static_cast<void*>(&values[at]);
  return call(compute_kernel().function(), 1, 1, 1, 1, 1, 1, 0, stream, parameters.data(), nullptr);
}

void check(CUresult result) { CHECK(result == CUDA_SUCCESS); }

// All of them, one after the other.
CUgraphExec captured(CUstream stream, std::span<Computation* const> kernels) {
  check(script_function<decltype(&::cuStreamBeginCapture)>("cuStreamBeginCapture_v2")(stream,
                                                                                      CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (Computation* const one : kernels)
    check(launch(script_function<decltype(&::cuLaunchKernel)>("cuLaunchKernel"), stream, *one, one->accesses));
  CUgraph graph = nullptr;
  check(script_function<decltype(&::cuStreamEndCapture)>("cuStreamEndCapture")(stream, &graph));
  CUgraphExec executable = nullptr;
  check(script_function<decltype(&::cuGraphInstantiate)>("cuGraphInstantiateWithFlags")(&executable, graph, 0));
  check(script_function<decltype(&::cuGraphDestroy)>("cuGraphDestroy")(graph));
  return executable;
}
CUresult launch(CUgraphExec graph, CUstream stream) {
  return script_function<decltype(&::cuGraphLaunch)>("cuGraphLaunch")(graph, stream);
}
void destroy(CUgraphExec graph) {
  check(script_function<decltype(&::cuGraphExecDestroy)>("cuGraphExecDestroy")(graph));
}

// Of what the script calls nothing fails.
struct Spared {
  Spared() { strict_cuda().is_spared(true); }
  ~Spared() { strict_cuda().is_spared(false); }
};

// A thread of the script: a kernel a launch, by turns on its streams. A launch waits, on the device, for those before
// it that used one of its blocks; nothing is waited for on the host.
class Script {
 public:
  // `gated`: what watches launches; null: nobody does.
  Script(CudaMachine& machine, const Program& program, const Limits& limits, const GatedLaunches* gated)
      : machine_(machine),
        program_(program),
        gated_(gated),
        tells_writes_(limits.tells_writes),
        graphs_(limits.graphs),
        streams_(limits.streams) {
    const Spared spared;
    for (CUstream& stream : streams_) check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }
  ~Script() {
    const Spared spared;
    for (const CUevent event : events_) check(driver().cuEventDestroy(event));
    for (const CUstream stream : streams_) {
      if (gated_ != nullptr) {
        check(script_function<decltype(&::cuStreamDestroy)>("cuStreamDestroy_v2")(stream));
        continue;
      }
      CHECK(machine_.gate().streams().ends(stream).has_value());
      check(driver().cuStreamDestroy(stream));
    }
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  void run() {
    const Spared spared;
    Inbox& inbox = machine_.inbox();
    const StreamId thread = machine_.streams().of_this_thread();
    std::minstd_rand random(program_.first.value + 1);
    std::map<std::uint32_t, std::vector<CUevent>> uses;  // of blocks
    const auto place = [&](TensorId tensor) { return program_.layout.tensors[tensor.value]; };
    const auto id = [&](TensorId tensor) { return TensorId{program_.first.value + tensor.value}; };
    for (std::uint32_t at = 0, count = 0; at < program_.trace.kernels.size() && error.empty(); at += count) {
      count = graphs_ && random() % 2 == 0 ? kernels_of_graph(at) : 1;
      std::vector<Computation*> kernels;
      std::vector<BlockAccess> accesses;
      for (std::uint32_t kernel = at; kernel < at + count; ++kernel) {
        for (const TensorId tensor : program_.lifetimes.births[kernel]) {
          inbox.allocated(id(tensor), place(tensor));
          if (gated_ != nullptr) CHECK(shim().add(gated_->range_of(address(place(tensor)), bytes_of(place(tensor)))));
        }
        Computation& one = computations_.emplace_back();
        one = {.accesses = program_.layout.accesses(program_.trace, program_.trace.kernels[kernel]),
               .kernel = kernel,
               .begin = machine_.address({0}),
               .block_bytes = machine_.block_bytes()};
        kernels.push_back(&one);
        accesses.insert(accesses.end(), one.accesses.begin(), one.accesses.end());
      }
      std::vector<BlockAccess> told = accesses;
      for (BlockAccess& access : told) access.writes &= tells_writes_;
      const LaunchId launch{thread, at + 1};
      inbox.kernel_ready({.launch = launch, .kernel = kNoKernel, .accesses = told, .waits = false}, random() % 2 == 0);
      const CUstream stream = streams_[at % streams_.size()];
      CUevent event = nullptr;
      check(driver().cuEventCreate(&event, 0));
      events_.push_back(event);
      for (const BlockAccess& access : accesses)
        for (BlockId block = access.blocks.first; block < access.blocks.end(); ++block.value) {
          for (const CUevent before : uses[block.value])
            if (before != event) check(driver().cuStreamWaitEvent(stream, before, 0));
          uses[block.value].push_back(event);
        }
      if (!launch_on(stream, kernels, random() % 4 == 0)) computations_.resize(computations_.size() - count);
      check(driver().cuEventRecord(event, stream));
      inbox.kernel_done(launch);
      for (const TensorId tensor : program_.lifetimes.deaths[at + count - 1]) {
        if (gated_ != nullptr) CHECK(shim().remove(machine_.address(place(tensor).first)));
        inbox.freed(id(tensor), place(tensor));
      }
    }
    for (const CUstream stream : streams_) check(driver().cuStreamSynchronize(stream));
  }

  std::uint32_t graphs = 0;                        // that were launched
  std::string error;                               // of a launch
  static inline thread_local std::string refusal;  // of this thread's latest launch, by who watches
  std::vector<std::uint64_t> sums() const {
    std::vector<std::uint64_t> sums;
    for (const Computation& one : computations_) sums.push_back(one.sum);
    return sums;
  }

 private:
  // So many from this one on become a graph: they fit in the smallest device, and what dies does so after the last.
  std::uint32_t kernels_of_graph(std::uint32_t first) const {
    constexpr std::uint32_t kMostKernels = 4, kMostBlocks = 26;
    std::uint32_t blocks = 0, count = 0;
    for (std::uint32_t at = first; at < program_.trace.kernels.size() && count < kMostKernels; ++at, ++count) {
      for (const BlockAccess& access : program_.layout.accesses(program_.trace, program_.trace.kernels[at]))
        blocks += access.blocks.count;
      if (count > 0 && (blocks > kMostBlocks || !program_.lifetimes.deaths[at - 1].empty())) break;
    }
    return count;
  }
  const void* address(BlockRange blocks) const { return reinterpret_cast<const void*>(machine_.address(blocks.first)); }
  Bytes bytes_of(BlockRange blocks) const { return machine_.block_bytes() * blocks.count; }
  // False: nothing is served any more.
  bool launch_on(CUstream stream, std::span<Computation* const> kernels, bool dawdles) {
    Computation& one = *kernels.front();
    if (gated_ != nullptr) {
      const CUgraphExec graph = kernels.size() > 1 ? captured(stream, kernels) : nullptr;
      strict_cuda().is_spared(false);
      const CUresult launched =
          graph != nullptr
              ? launch(graph, stream)
              : launch(script_function<decltype(&::cuLaunchKernel)>("cuLaunchKernel"), stream, one, one.accesses);
      strict_cuda().is_spared(true);
      if (graph != nullptr) destroy(graph), ++graphs;
      if (launched != CUDA_SUCCESS) error = refusal;
      return launched == CUDA_SUCCESS;
    }
    std::vector<BlockTouch> touches;
    for (const BlockAccess& access : one.accesses) touches.push_back({access.blocks, access.writes});
    strict_cuda().is_spared(false);  // But within the gate.
    const auto entered = machine_.gate().enter(stream, touches);
    strict_cuda().is_spared(true);
    if (!entered) {
      error = entered.error().message;
      return false;
    }
    for (unsigned turns = dawdles ? 8 : 0; turns > 0; --turns) std::this_thread::yield();
    check(launch(driver().cuLaunchKernel, stream, one, one.accesses));
    machine_.gate().leave(stream, touches, [](const Error& miss) { CHECK(miss.message.empty()); });
    return true;
  }

  CudaMachine& machine_;
  const Program& program_;
  const GatedLaunches* gated_;
  bool tells_writes_, graphs_;
  std::vector<CUstream> streams_;
  std::deque<Computation> computations_;
  std::vector<CUevent> events_;
};

struct Ran {
  RuledMachine::Asked asked;
  std::string error;  // of the machine; empty: none
  std::uint32_t graphs = 0;
};
Ran run_on_cuda(std::uint64_t seed, std::uint32_t kernels, Limits limits) {
  std::vector<Program> programs;
  TensorId tensors;
  std::uint32_t blocks = 0;
  for (std::uint32_t thread = 0; thread < limits.threads; ++thread) {
    Program& one = programs.emplace_back(random_program(seed + 1000 * thread, kernels));
    one.layout = layout_from(blocks, one.trace, one.lifetimes);
    one.first = tensors;
    tensors.value += static_cast<std::uint32_t>(one.trace.tensors.size());
    blocks = static_cast<std::uint32_t>(one.layout.block_bytes.size());
  }
  auto file = SpillFile::open(spill_directory(), limits.block_bytes * kSsdBlocks, limits.block_bytes);
  const std::uint32_t beyond =
      blocks + 16 > limits.device + limits.host ? blocks + 16 - limits.device - limits.host : 1;
  CHECK(file.has_value() && file->reserve(limits.reserves_all ? kSsdBlocks : beyond).has_value());
  auto machine = CudaMachine::make(driver(),
                                   {.device_frames = limits.device,
                                    .host_slots = limits.host,
                                    .range_blocks = blocks,
                                    .block_bytes = limits.block_bytes,
                                    .strict = limits.strict},
                                   *file);
  if (!machine) return {.asked = {}, .error = machine.error().message, .graphs = 0};
  CudaMachine& cuda = **machine;
  RuledMachine ruled(cuda, blocks, limits.device);
  Ran ran;
  {
    std::atomic<std::uint32_t> rest = limits.threads;
    std::optional<GatedLaunches> gated;
    if (limits.through_shim) shim().observe(&gated.emplace(cuda, [](std::string_view why) { Script::refusal = why; }));
    std::deque<Script> scripts;
    std::vector<std::thread> threads;
    for (const Program& program : programs) {
      Script& script = scripts.emplace_back(cuda, program, limits, gated ? &*gated : nullptr);
      threads.emplace_back([&] {
        script.run();
        --rest;
        // So that the loop looks.
        cuda.inbox().kernel_ready({.launch = {cuda.streams().of_this_thread(), kernels + 1},
                                   .kernel = kNoKernel,
                                   .accesses = {},
                                   .waits = false},
                                  true);
      });
    }
    const Bytes block = limits.block_bytes;
    PageTable table({block * limits.device, block * limits.host, block * kSsdBlocks});
    table.add_blocks(blocks, block);
    Executor executor(std::move(table), {.window_blocks = limits.device,
                                         .migration = {.keep_dead_blocks = limits.keep_dead,
                                                       .splits_blocks = false,
                                                       .host_keeps_copies = limits.keep_copies}});
    const auto result = run_loop(ruled, executor, limits.keep_copies, kernels, [&] {
      cuda.check_invariants();
      return rest == 0;
    });
    for (std::thread& thread : threads) thread.join();
    if (!result) ran.error = result.error().message;
    for (std::size_t thread = 0; thread < scripts.size(); ++thread) {
      if (ran.error.empty()) ran.error = scripts[thread].error;
      ran.graphs += scripts[thread].graphs;
      // What was launched has run, and read what it should, whatever failed later.
      auto expected = run_in_plain_memory(programs[thread].trace, programs[thread].layout, limits.block_bytes);
      const auto sums = scripts[thread].sums();
      EXPECT_TRUE(sums.size() == expected.size() || !ran.error.empty());
      expected.resize(sums.size());
      EXPECT_EQ(sums, expected);
    }
  }
  if (limits.through_shim) shim().observe(nullptr);
  EXPECT_EQ(cuda.activity().checked_launches > 0, limits.strict);
  EXPECT_LE(cuda.stats().dropped_clean(), limits.block_bytes * ruled.asked().dropped_clean);
  ran.asked = ruled.asked();
  return ran;
}

TEST(CudaConformance, ReadsWhatARunWithoutLimitsReads) {
  const std::uint64_t seeds = 12 * effort();
  std::uint64_t dropped_clean = 0, spilled = 0, graphs = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    const Limits limits{.device = 28 + static_cast<std::uint32_t>(seed) % 3 * 4,
                        .host = seed % 2 == 0 ? 0u : 10u,
                        .keep_dead = seed % 4 < 2,
                        .keep_copies = seed % 3 != 0,
                        .streams = 1 + static_cast<std::uint32_t>(seed) % 3,
                        .threads = 1 + static_cast<std::uint32_t>(seed) % 2,
                        .tells_writes = seed % 5 != 0,
                        .through_shim = seed % 3 == 1,
                        .graphs = seed % 3 == 1,
                        .strict = seed % 4 == 0};
    const auto [asked, error, launched] = run_on_cuda(seed, 60, limits);
    EXPECT_EQ(error, "");
    graphs += launched;
    dropped_clean += asked.dropped_clean;
    spilled += !asked.moved(Tier::device, Tier::ssd).empty();
  }
  EXPECT_GT(spilled, seeds / 2);
  EXPECT_GT(dropped_clean, 0u);
  EXPECT_GT(graphs, 0u);
}

TEST(CudaConformance, BlocksMayBeLarger) {
  for (const Bytes block : {4_MiB, 8_MiB}) {
    SCOPED_TRACE(block.value);
    const bool odd = block == 4_MiB;
    const Limits limits{.device = 28,
                        .host = odd ? 10u : 0u,
                        .keep_copies = true,
                        .streams = 2,
                        .threads = odd ? 2u : 1u,
                        .through_shim = true,
                        .graphs = odd,
                        .strict = !odd,
                        .block_bytes = block};
    const auto [asked, error, launched] = run_on_cuda(block.value >> 20, 40, limits);
    EXPECT_EQ(error, "");
    EXPECT_FALSE(asked.moved(Tier::device, Tier::ssd).empty());
  }
}

// A machine with room for four blocks, each of which has a tensor. Its run loop runs beside the test.
class Beside {
 public:
  static constexpr std::uint32_t kFrames = 4, kTensors = 6;

  explicit Beside(bool strict)
      : file_(*SpillFile::open(spill_directory(), kBlockBytes * kSsdBlocks)),
        machine_(*CudaMachine::make(
            driver(), {.device_frames = kFrames, .host_slots = 2, .range_blocks = kTensors, .strict = strict}, file_)),
        ruled_(*machine_, kTensors, kFrames),
        executor_(empty_table(), {.migration = {.splits_blocks = false}}),
        gated_(*machine_, [this](std::string_view why) { refusal = why; }) {
    CHECK(file_.reserve(kSsdBlocks).has_value());
    check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    shim().observe(&gated_);
    loop_ = std::thread([this] { std::ignore = run_loop(ruled_, executor_, false, 1, [] { return false; }); });
    for (std::uint32_t tensor = 0; tensor < kTensors; ++tensor) {
      machine_->inbox().allocated({tensor}, {{tensor}, 1});
      const auto* const begin = reinterpret_cast<const void*>(machine_->address({tensor}));
      CHECK(shim().add(gated_.range_of(begin, kBlockBytes)));
    }
  }
  ~Beside() {
    {
      const std::lock_guard lock(strict_cuda().mutex);
      strict_cuda().all_fail = CUDA_SUCCESS;
    }
    check(driver().cuStreamSynchronize(stream));
    shim().observe(nullptr);
    for (std::uint32_t tensor = 0; tensor < kTensors; ++tensor) CHECK(shim().remove(machine_->address({tensor})));
    machine_->stop();
    loop_.join();
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  // A kernel that writes to these.
  Computation& kernel(std::initializer_list<std::uint32_t> tensors) {
    Computation& one = computations_.emplace_back();
    one.begin = machine_->address({0});
    for (const std::uint32_t tensor : tensors) one.accesses.push_back({.blocks = {{tensor}, 1}, .writes = true});
    return one;
  }
  // It is given only so many of its tensors.
  CUresult launch_with(Computation& one, std::size_t given) const {
    return launch(script_function<decltype(&::cuLaunchKernel)>("cuLaunchKernel"), stream, one,
                  std::span(one.accesses).first(given));
  }
  const std::byte* begin_of(std::uint32_t tensor) const {
    return reinterpret_cast<const std::byte*>(machine_->address({tensor}));
  }
  GatedLaunches& gated() { return gated_; }
  std::uint64_t checked() const { return machine_->activity().checked_launches; }

  CUstream stream = nullptr;
  std::string refusal;

 private:
  static PageTable empty_table() {
    PageTable table({kBlockBytes * kFrames, kBlockBytes * 2, kBlockBytes * kSsdBlocks});
    table.add_blocks(kTensors, kBlockBytes);
    return table;
  }

  SpillFile file_;
  std::unique_ptr<CudaMachine> machine_;
  RuledMachine ruled_;
  Executor executor_;
  GatedLaunches gated_;
  std::deque<Computation> computations_;
  std::thread loop_;
};

TEST(CudaConformance, AGraphWaitsForAllThatItsKernelsTouchAndIsRefusedIfThatIsMoreThanTheBudget) {
  Beside run(false);
  std::vector<Computation*> kernels;
  for (std::uint32_t tensor = 0; tensor < Beside::kFrames; ++tensor) kernels.push_back(&run.kernel({tensor}));
  const CUgraphExec fits = captured(run.stream, kernels);
  EXPECT_EQ(kernels.front()->sum, 0u) << "it has run while it was captured";
  for (const std::uint32_t tensor : {4u, 5u, 4u}) {  // Others leave for it each time.
    check(launch(fits, run.stream));
    check(run.launch_with(run.kernel({tensor}), 1));
  }
  kernels.push_back(&run.kernel({4}));
  const CUgraphExec large = captured(run.stream, kernels);
  EXPECT_EQ(run.refusal, "");
  EXPECT_EQ(launch(large, run.stream), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_NE(run.refusal.find("one launch uses 10 MiB of device memory, and the budget is 8 MiB"), std::string::npos)
      << run.refusal;
  check(launch(fits, run.stream));
  for (const CUgraphExec graph : {fits, large}) destroy(graph);
}

TEST(CudaConformance, AStrictRunFindsWhatALaunchWasNotSeenToTouch) {
  for (const bool strict : {false, true}) {
    Beside run(strict);
    {
      const std::lock_guard lock(strict_cuda().mutex);
      strict_cuda().loses_device = true;
    }
    check(run.launch_with(run.kernel({0, 1}), 2));
    check(run.launch_with(run.kernel({2}), 1));
    check(run.launch_with(run.kernel({0, 1}), 2));
    EXPECT_EQ(run.refusal, "");
    GatedLaunches::operator_begins("test::operator");
    check(run.launch_with(run.kernel({0, 1}), 1));  // That it would fail is known once it has run.
    GatedLaunches::operator_ends();
    EXPECT_EQ(run.checked(), strict ? 4u : 0u);
    if (strict)
      EXPECT_TRUE(run.refusal.starts_with("the kernel compute of test::operator has touched memory") &&
                  run.refusal.contains("CUDA_ERROR_ILLEGAL_ADDRESS"))
          << run.refusal;
    else
      EXPECT_EQ(run.refusal, "");
    const std::lock_guard lock(strict_cuda().mutex);
    strict_cuda().loses_device = false;
  }
}

// What it finds by addresses in device memory. Four pieces of one tensor are one block.
TEST(CudaConformance, ALaunchMayTouchWhatItsOperatorWasGivenUntilThatIsDead) {
  Beside run(true);
  {
    const std::lock_guard lock(strict_cuda().mutex);
    strict_cuda().loses_device = true;
  }
  GatedLaunches::operator_begins("test::operator");
  for (const std::size_t piece : {1, 2, 3, 4})
    run.gated().operator_touches(run.begin_of(1) + 256 * piece, Bytes{256}, true);
  check(run.launch_with(run.kernel({0, 1}), 1));
  EXPECT_EQ(run.refusal, "");
  GatedLaunches::operator_forgets(run.begin_of(1), kBlockBytes);
  check(run.launch_with(run.kernel({0, 1}), 1));
  EXPECT_TRUE(run.refusal.contains("CUDA_ERROR_ILLEGAL_ADDRESS")) << run.refusal;
  GatedLaunches::operator_ends();
  const std::lock_guard lock(strict_cuda().mutex);
  strict_cuda().loses_device = false;
}

// A kernel without parameters.
StrictKernel kernel_that(std::function<void()> runs) {
  return {.name = "test",
          .parameters = {},
          .run = [runs = std::move(runs)](void**) { runs(); },
          .memory = [](void**) { return std::vector<StrictKernel::Memory>(); }};
}

TEST(CudaStreams, WhoWaitsForAMarkWaitsForNothingThatCameLater) {
  ScriptStreams streams(driver(), nullptr, 1);
  CUstream first = nullptr, second = nullptr;
  for (CUstream* const stream : {&first, &second}) {
    check(driver().cuStreamCreate(stream, CU_STREAM_NON_BLOCKING));
    ASSERT_TRUE(streams.number_of(*stream).has_value());
  }
  std::promise<void> go, has_run;
  bool is_first_done = false, came_in_time = false;
  const auto launch_on = [&](CUstream stream, StrictKernel& kernel) {
    check(driver().cuLaunchKernel(kernel.function(), 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
    return streams.enqueued(*streams.number_of(stream));
  };
  StrictKernel used = kernel_that([&] {
    go.get_future().wait();
    is_first_done = true;
  });
  // It ends when the other stream's has run.
  StrictKernel later = kernel_that(
      [&] { came_in_time = has_run.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready; });
  StrictKernel next = kernel_that([&] {
    EXPECT_TRUE(is_first_done);
    has_run.set_value();
  });
  const StreamUse use{*streams.number_of(first), launch_on(first, used)};
  EXPECT_EQ(streams.all_of(use.stream), use);
  streams.mark(use);
  launch_on(first, later);
  ASSERT_TRUE(streams.let_wait(second, std::span(&use, 1)).has_value());
  launch_on(second, next);
  go.set_value();
  for (const CUstream stream : {second, first}) {
    check(driver().cuStreamSynchronize(stream));
    EXPECT_TRUE(streams.ends(stream).has_value());
    check(driver().cuStreamDestroy(stream));
  }
  EXPECT_TRUE(came_in_time);
}

// The first one's memory is freed after it was let wait for the second, and goes to the third.
void test_that_waits_count(bool by_script) {
  ScriptStreams streams(driver(), nullptr, 1);
  std::array<CUstream, 3> all{};
  for (CUstream& stream : all) {
    check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ASSERT_TRUE(streams.number_of(stream).has_value());
  }
  const auto& [first, second, third] = all;
  const auto launch_on = [&](CUstream stream, StrictKernel& kernel) {
    check(driver().cuLaunchKernel(kernel.function(), 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
    return streams.enqueued(*streams.number_of(stream));
  };
  const std::uint32_t number = *streams.number_of(first);
  StrictKernel makes = kernel_that([] {});
  streams.mark({number, launch_on(first, makes)});
  check(driver().cuStreamSynchronize(first));
  std::promise<void> go;
  std::atomic<bool> has_read = false;
  StrictKernel reads = kernel_that([&] {
    go.get_future().wait();
    has_read = true;
  });
  const StreamUse reading{*streams.number_of(second), launch_on(second, reads)};
  CUevent read = nullptr;
  check(driver().cuEventCreate(&read, CU_EVENT_DISABLE_TIMING));
  if (by_script) {
    check(driver().cuEventRecord(read, second));
    check(driver().cuStreamWaitEvent(first, read, 0));
    streams.waits(first);
  } else {
    ASSERT_TRUE(streams.let_wait(first, std::span(&reading, 1)).has_value());
  }

  const StreamUse use = streams.all_of(number);
  streams.mark(use);
  ASSERT_TRUE(streams.let_wait(third, std::span(&use, 1)).has_value());
  StrictKernel overwrites = kernel_that([&] { EXPECT_TRUE(has_read); });
  launch_on(third, overwrites);
  go.set_value();
  for (const CUstream stream : {third, second, first}) {
    check(driver().cuStreamSynchronize(stream));
    EXPECT_TRUE(streams.ends(stream).has_value());
    check(driver().cuStreamDestroy(stream));
  }
  check(driver().cuEventDestroy(read));
}

TEST(CudaStreams, WhatAScriptLetsAStreamWaitForCountsLikeItsOwn) { test_that_waits_count(true); }
TEST(CudaStreams, WhatMemoryLetsAStreamWaitForCountsLikeItsOwn) { test_that_waits_count(false); }

TEST(CudaStreams, ThoseThatHaveEndedMakeRoomForOthers) {
  ScriptStreams streams(driver(), nullptr, 1);
  std::set<std::uint32_t> numbers;
  for (std::uint32_t at = 0; at < 2 * ScriptStreams::kMost; ++at) {
    CUstream stream = nullptr;
    check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    const auto number = streams.number_of(stream);
    ASSERT_TRUE(number.has_value()) << number.error().message;
    numbers.insert(*number);
    const std::uint64_t launch = streams.enqueued(*number);
    EXPECT_FALSE(streams.is_done({*number, launch}));
    ASSERT_TRUE(streams.ends(stream).has_value());
    check(driver().cuStreamDestroy(stream));
  }
  EXPECT_LT(numbers.size(), 3u);
}

// The rest of the budget was promised to hold what the SSD then has no space for.
TEST(CudaConformance, WhereLessIsPinnedThanTheBudgetTheSsdGetsTheSpace) {
  StrictCuda& strict = strict_cuda();
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    {
      const std::lock_guard lock(strict.mutex);  // The first one is for what goes through host memory to the SSD.
      strict.faults = {{"cuMemAllocHost", {1 + seed % 2, CUDA_ERROR_OUT_OF_MEMORY}}};
    }
    const auto [asked, error, graphs] = run_on_cuda(seed, 60, {.device = 20, .host = 60, .reserves_all = false});
    EXPECT_EQ(error, "") << seed;
    const std::lock_guard lock(strict.mutex);
    EXPECT_TRUE(strict.faults.empty()) << "it did not pin";
  }
}

// Whatever call of the driver fails, and whenever: the run ends with an error that names it, or is as if nothing had
// failed.
TEST(CudaConformance, FailuresOfTheDriverAreToldAndNothingIsWrong) {
  constexpr const char* kCalls[] = {"cuMemCreate",       "cuMemMap",          "cuMemSetAccess", "cuMemUnmap",
                                    "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemAllocHost", "cuEventRecord",
                                    "cuEventQuery",      "cuStreamWaitEvent", "cuEventCreate"};
  StrictCuda& strict = strict_cuda();
  const std::size_t step = kSanitized && !has_time() ? 3 : 1;  // Then each call fails at one of these places.
  constexpr std::array<std::uint64_t, 3> kAfter{0, 3, 40};
  std::uint32_t failed = 0, runs = 0;
  for (std::size_t at = 0; at < std::size(kCalls); ++at)
    for (std::size_t place = at % step; place < kAfter.size(); place += step, ++runs) {
      const char* const call = kCalls[at];
      const std::uint64_t after = kAfter[place];
      SCOPED_TRACE(std::string(call) + " after " + std::to_string(after));
      const std::uint64_t seed = after + 1;
      {
        const std::lock_guard lock(strict.mutex);
        strict.faults = {{call, {after, CUDA_ERROR_UNKNOWN}}};
      }
      const auto [asked, error, graphs] =
          run_on_cuda(seed, 40, {.device = 28, .host = 6, .keep_dead = true, .keep_copies = true, .streams = 2});
      if (error.empty()) continue;
      ++failed;
      EXPECT_NE(error.find("CUDA_ERROR_UNKNOWN"), std::string::npos) << error;
    }
  EXPECT_GT(failed, runs / 3);
}

}  // namespace
}  // namespace spillway::on_cuda
