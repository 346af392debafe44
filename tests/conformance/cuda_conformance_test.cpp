// The same programs as in conformance_test.cpp on the CUDA machine, over a driver without a GPU: several streams,
// launches and frees in flight. Each must keep the promises of the machine port, and every byte a kernel reads must be
// what a run without limits reads.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <thread>

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
};

// As a heap does it: tensors get the lowest blocks in which none lives, those of the dead above all.
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
            one.sum = compute(one.accesses, one.kernel, [&](BlockId block) {
              return reinterpret_cast<std::byte*>(one.begin + block.value * kBlockBytes.value);
            });
          },
      .memory =
          [](void** parameters) {
            const Computation& one = **static_cast<Computation**>(parameters[0]);
            std::vector<StrictKernel::Memory> touched;
            for (const BlockAccess& access : one.accesses)
              touched.push_back(
                  {one.begin + access.blocks.first.value * kBlockBytes.value, access.blocks.count * kBlockBytes.value});
            return touched;
          },
  };
  return kernel;
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
    for (std::uint32_t at = 0; at < program_.trace.kernels.size() && error.empty(); ++at) {
      for (const TensorId tensor : program_.lifetimes.births[at]) {
        inbox.allocated(id(tensor), place(tensor));
        if (gated_ != nullptr) CHECK(shim().add(gated_->range_of(address(place(tensor)), bytes_of(place(tensor)))));
      }
      Computation& one = computations_.emplace_back();
      one = {.accesses = program_.layout.accesses(program_.trace, program_.trace.kernels[at]),
             .kernel = at,
             .begin = machine_.address({0})};
      std::vector<BlockAccess> told = one.accesses;
      for (BlockAccess& access : told) access.writes &= tells_writes_;
      const LaunchId launch{thread, at + 1};
      inbox.kernel_ready({.launch = launch, .kernel = kNoKernel, .accesses = told, .waits = false}, random() % 2 == 0);
      const CUstream stream = streams_[at % streams_.size()];
      CUevent event = nullptr;
      check(driver().cuEventCreate(&event, 0));
      events_.push_back(event);
      for (const BlockAccess& access : one.accesses)
        for (BlockId block = access.blocks.first; block < access.blocks.end(); ++block.value) {
          for (const CUevent before : uses[block.value])
            if (before != event) check(driver().cuStreamWaitEvent(stream, before, 0));
          uses[block.value].push_back(event);
        }
      if (!launch_on(stream, one, random() % 4 == 0)) computations_.pop_back();
      check(driver().cuEventRecord(event, stream));
      inbox.kernel_done(launch);
      for (const TensorId tensor : program_.lifetimes.deaths[at]) {
        if (gated_ != nullptr) CHECK(shim().remove(machine_.address(place(tensor).first)));
        inbox.freed(id(tensor), place(tensor));
      }
    }
    for (const CUstream stream : streams_) check(driver().cuStreamSynchronize(stream));
  }

  std::string error;                               // of a launch
  static inline thread_local std::string refusal;  // of this thread's latest launch, by who watches
  std::vector<std::uint64_t> sums() const {
    std::vector<std::uint64_t> sums;
    for (const Computation& one : computations_) sums.push_back(one.sum);
    return sums;
  }

 private:
  static void check(CUresult result) { CHECK(result == CUDA_SUCCESS); }
  const void* address(BlockRange blocks) const { return reinterpret_cast<const void*>(machine_.address(blocks.first)); }
  static Bytes bytes_of(BlockRange blocks) { return kBlockBytes * blocks.count; }
  // False: nothing is served any more.
  bool launch_on(CUstream stream, Computation& one, bool dawdles) {
    CHECK(one.accesses.size() <= kMostTensors);
    std::array<const void*, 1 + kMostTensors> values{&one};
    for (std::size_t at = 0; at < one.accesses.size(); ++at) values[1 + at] = address(one.accesses[at].blocks);
    std::array<void*, values.size()> parameters;
    for (std::size_t at = 0; at < values.size(); ++at) parameters[at] = static_cast<void*>(&values[at]);
    const auto launch = [&](decltype(&::cuLaunchKernel) call) {
      return call(compute_kernel().function(), 1, 1, 1, 1, 1, 1, 0, stream, parameters.data(), nullptr);
    };
    if (gated_ != nullptr) {
      strict_cuda().is_spared(false);
      const CUresult launched = launch(script_function<decltype(&::cuLaunchKernel)>("cuLaunchKernel"));
      strict_cuda().is_spared(true);
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
    check(launch(driver().cuLaunchKernel));
    machine_.gate().leave(stream, touches);
    return true;
  }

  CudaMachine& machine_;
  const Program& program_;
  const GatedLaunches* gated_;
  bool tells_writes_;
  std::vector<CUstream> streams_;
  std::deque<Computation> computations_;
  std::vector<CUevent> events_;
};

struct Ran {
  RuledMachine::Asked asked;
  std::string error;  // of the machine; empty: none
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
  auto file = SpillFile::open(spill_directory(), kBlockBytes * kSsdBlocks);
  CHECK(file.has_value() && file->reserve(kSsdBlocks).has_value());
  auto machine = CudaMachine::make(
      driver(), {.device_frames = limits.device, .host_slots = limits.host, .range_blocks = blocks}, *file);
  if (!machine) return {.asked = {}, .error = machine.error().message};
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
    PageTable table({kBlockBytes * limits.device, kBlockBytes * limits.host, kBlockBytes * kSsdBlocks});
    table.add_blocks(blocks, kBlockBytes);
    Executor executor(std::move(table), {.migration = {.keep_dead_blocks = limits.keep_dead,
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
      // What was launched has run, and read what it should, whatever failed later.
      auto expected = run_in_plain_memory(programs[thread].trace, programs[thread].layout);
      const auto sums = scripts[thread].sums();
      EXPECT_TRUE(sums.size() == expected.size() || !ran.error.empty());
      expected.resize(sums.size());
      EXPECT_EQ(sums, expected);
    }
  }
  if (limits.through_shim) shim().observe(nullptr);
  EXPECT_LE(cuda.stats().dropped_clean(), kBlockBytes * ruled.asked().dropped_clean);
  ran.asked = ruled.asked();
  return ran;
}

TEST(CudaConformance, ReadsWhatARunWithoutLimitsReads) {
  const std::uint64_t seeds = 12 * effort();
  std::uint64_t dropped_clean = 0, spilled = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    const Limits limits{.device = 28 + static_cast<std::uint32_t>(seed) % 3 * 4,
                        .host = seed % 2 == 0 ? 0u : 10u,
                        .keep_dead = seed % 4 < 2,
                        .keep_copies = seed % 3 != 0,
                        .streams = 1 + static_cast<std::uint32_t>(seed) % 3,
                        .threads = 1 + static_cast<std::uint32_t>(seed) % 2,
                        .tells_writes = seed % 5 != 0,
                        .through_shim = seed % 3 == 1};
    const auto [asked, error] = run_on_cuda(seed, 60, limits);
    EXPECT_EQ(error, "");
    dropped_clean += asked.dropped_clean;
    spilled += !asked.moved(Tier::device, Tier::ssd).empty();
  }
  EXPECT_GT(spilled, seeds / 2);
  EXPECT_GT(dropped_clean, 0u);
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
      const auto [asked, error] =
          run_on_cuda(seed, 40, {.device = 28, .host = 6, .keep_dead = true, .keep_copies = true, .streams = 2});
      if (error.empty()) continue;
      ++failed;
      EXPECT_NE(error.find("CUDA_ERROR_UNKNOWN"), std::string::npos) << error;
    }
  EXPECT_GT(failed, runs / 3);
}

}  // namespace
}  // namespace spillway::on_cuda
