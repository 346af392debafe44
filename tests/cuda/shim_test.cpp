// The launch shim as a process sees it: libspillway_cuda.so, loaded with a driver without a GPU behind it.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "fake/fake_driver.h"
#include "hook/cuda/launch.h"

namespace spillway {
namespace {

constexpr std::uint64_t kBase = std::uint64_t{1} << 40, kBytes = 1 << 20;
const CUstream kStream = reinterpret_cast<CUstream>(std::uint64_t{0x5000});

// What an observer was told, with copies of what is gone when the launch is over.
struct Told {
  CudaLaunch launch;
  std::vector<CudaTouch> touches;
  bool is_over = false;
  int result = -1;

  std::multimap<std::uint64_t, CudaAccess> ids() const {
    std::multimap<std::uint64_t, CudaAccess> ids;
    for (const CudaTouch& touch : touches) ids.emplace(touch.range, touch.access);
    return ids;
  }
};

class Watcher final : public LaunchObserver {
 public:
  bool before(const CudaLaunch& launch) noexcept override {
    told.push_back({.launch = launch, .touches = {launch.touches.begin(), launch.touches.end()}});
    if (within) within();
    return allows;
  }
  void after(const CudaLaunch&, int result) noexcept override {
    told.back().is_over = true;
    told.back().result = result;
  }
  void stream_waits(CUstream_st* stream) noexcept override { waits.push_back(stream); }
  std::vector<Told> told;
  std::vector<CUstream_st*> waits;
  std::function<void()> within;
  bool allows = true;
};

using Accesses = std::multimap<std::uint64_t, CudaAccess>;
constexpr auto kRead = CudaAccess::read, kWrite = CudaAccess::write, kEither = CudaAccess::read_or_write;

class ShimTest : public testing::Test {
 protected:
  // One shim and driver a process, as in life.
  static void SetUpTestSuite() {
    ::setenv(kCudaDriverVariable, SPILLWAY_FAKE_CUDA, 1);
    library = ::dlopen(SPILLWAY_CUDA_SHIM, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << ::dlerror();
    shim = reinterpret_cast<CudaShim* (*)()>(::dlsym(library, kCudaShimSymbol))();
    fake = reinterpret_cast<FakeDriverOf>(shim->driver_function("fake_cuda"))();
  }
  ShimTest() {
    fake->kernels.clear();
    fake->missing.clear();
    fake->capturing.clear();
    fake->result = CUDA_SUCCESS;
    fake->called = nullptr;
    fake->calls.clear();
    for (std::uint64_t id = 0; id < 8; ++id) EXPECT_TRUE(shim->add({.begin = at(id), .bytes = kBytes, .id = id}));
    shim->observe(&watcher);
  }
  ~ShimTest() override {
    shim->observe(nullptr);
    for (std::uint64_t id = 0; id < 8; ++id) EXPECT_TRUE(shim->remove(at(id)));
    function<CUresult (*)(CUmodule)>("cuModuleUnload")(nullptr);  // layouts are forgotten
  }
  static std::uint64_t at(std::uint64_t id) { return kBase + id * 2 * kBytes; }

  template <class Function>
  static Function function(const char* name) {
    void* const found = ::dlsym(library, name);
    EXPECT_NE(found, nullptr) << name;
    return reinterpret_cast<Function>(found);
  }
#define CALL(name) function<decltype(&::name)>(SPILLWAY_NAME_OF(name))
#define SPILLWAY_NAME_OF(name) #name

  CUfunction known(FakeKernel& kernel) {
    fake->kernels.insert(&kernel);
    return kernel.function();
  }
  CUresult launch(CUfunction kernel, void** each, void** extra = nullptr, unsigned grid = 1) {
    return CALL(cuLaunchKernel)(kernel, grid, 1, 1, 32, 1, 1, 0, kStream, each, extra);
  }
  const Told& last() {
    EXPECT_FALSE(watcher.told.empty());
    return watcher.told.back();
  }
  FakeCall last_call() {
    const std::lock_guard lock(fake->mutex);
    return fake->calls.empty() ? FakeCall{} : fake->calls.back();
  }

  inline static void* library = nullptr;
  inline static CudaShim* shim = nullptr;
  inline static FakeDriver* fake = nullptr;
  Watcher watcher;
};

// --- Forwarding

TEST_F(ShimTest, EveryFunctionReachesTheDriverWithItsArguments) {
  shim->observe(nullptr);
  fake->result = CUDA_ERROR_UNKNOWN;
  static const std::set<std::string> answered = {"cuInit",
                                                 "cuDriverGetVersion",
                                                 "cuDeviceGetCount",
                                                 "cuFuncGetParamInfo",
                                                 "cuKernelGetParamInfo",
                                                 "cuFuncGetName",
                                                 "cuKernelGetName",
                                                 "cuStreamIsCapturing",
                                                 "cuGraphInstantiateWithFlags",
                                                 "cuGraphGetNodes",
                                                 "cuGraphNodeGetType",
                                                 "cuGraphKernelNodeGetParams_v2",
                                                 "cuGraphMemcpyNodeGetParams",
                                                 "cuGraphMemsetNodeGetParams",
                                                 "cuGraphChildGraphNodeGetGraph",
                                                 "cuGetProcAddress",
                                                 "cuGetProcAddress_v2",
                                                 "cuGetExportTable"};
  using N = std::uint64_t;
  using Any = CUresult (*)(N, N, N, N, N, N, N, N, N, N, N);
  constexpr std::array<N, 11> kSent{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  std::ifstream names(SPILLWAY_CUDA_FUNCTIONS);
  int forwarded = 0, whole = 0;
  for (std::string name; std::getline(names, name);) {
    ASSERT_NE(shim->driver_function(name.c_str()), nullptr) << "the fake driver lacks " << name;
    if (answered.contains(name)) continue;
    for (int twice = 0; twice < 2; ++twice) {  // the first call looks the function up
      fake->calls.clear();
      EXPECT_EQ(function<Any>(name.c_str())(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), CUDA_ERROR_UNKNOWN) << name;
      EXPECT_EQ(last_call().name, name);
      // A gate passes on as many as the function has, and of each as much as its type holds.
      const auto received = last_call().arguments;
      const auto same = [](N one, N other) {
        return static_cast<std::uint32_t>(one) == static_cast<std::uint32_t>(other);
      };
      const auto arrived = std::ranges::mismatch(received, kSent, same).in1 - received.begin();
      EXPECT_GE(arrived, 1) << name;
      if (name.starts_with("cuLaunchKernel") && !name.starts_with("cuLaunchKernelEx")) {
        EXPECT_EQ(arrived, 11) << name;
      }
      whole += arrived == 11;
    }
    ++forwarded;
  }
  EXPECT_GT(forwarded, 600);
  EXPECT_GT(whole, 2 * 500);
}

// A suite of its own is a process of its own, in which nobody has called the function yet.
using FirstCallTest = ShimTest;
TEST_F(FirstCallTest, KeepsFloatingPointArguments) {
  shim->observe(nullptr);
  static std::array<float, 8> seen{};
  fake->called = [](const char*) {
    asm volatile(
        "movss %%xmm0, %0\n movss %%xmm1, %1\n movss %%xmm2, %2\n movss %%xmm3, %3\n"
        "movss %%xmm4, %4\n movss %%xmm5, %5\n movss %%xmm6, %6\n movss %%xmm7, %7"
        : "=m"(seen[0]), "=m"(seen[1]), "=m"(seen[2]), "=m"(seen[3]), "=m"(seen[4]), "=m"(seen[5]), "=m"(seen[6]),
          "=m"(seen[7]));
  };
  using Floats = CUresult (*)(float, float, float, float, float, float, float, float);
  function<Floats>("cuTexRefSetMipmapLevelBias")(1.5f, 2.5f, 3.5f, 4.5f, 5.5f, 6.5f, 7.5f, 8.5f);
  EXPECT_EQ(seen, (std::array{1.5f, 2.5f, 3.5f, 4.5f, 5.5f, 6.5f, 7.5f, 8.5f}));
}

TEST_F(ShimTest, VersionsAndDefaultStreamsAThreadAreFoundByTheirNumber) {
  const auto ask = [&](const char* symbol, int version, cuuint64_t flags = 0) {
    void* found = nullptr;
    CALL(cuGetProcAddress)(symbol, &found, version, flags, nullptr);
    return found;
  };
  const auto real = [&](const char* name) { return shim->driver_function(name); };
  EXPECT_EQ(ask("cuMemcpyHtoD", 2000), real("cuMemcpyHtoD")) << "cannot name our memory";
  void* const gate = ask("cuMemcpyHtoD", 3020);
  EXPECT_NE(gate, real("cuMemcpyHtoD_v2"));
  void* const gate_of_thread = ask("cuMemcpyHtoD", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  EXPECT_NE(gate_of_thread, gate);
  EXPECT_NE(gate_of_thread, real("cuMemcpyHtoD_v2_ptds"));
  EXPECT_NE(ask("cuMemcpyBatchAsync", 12080), ask("cuMemcpyBatchAsync", 13000));
  EXPECT_EQ(ask("cuCtxSynchronize", 13000), real("cuCtxSynchronize")) << "nobody cares";
  EXPECT_EQ(ask("cuNoSuchFunction", 13000), nullptr);
  EXPECT_NE(ask("cuGetProcAddress", 12000), real("cuGetProcAddress_v2")) << "or the next would be the driver's";
  EXPECT_EQ(shim->unwatched_functions(), 0u);
  EXPECT_EQ(ask("cuMemcpyBatchAsync", 99000), real("cuMemcpyBatchAsync_of_tomorrow"));
  EXPECT_EQ(shim->unwatched_functions(), 1u);

  char byte = 0;
  reinterpret_cast<CUresult (*)(CUdeviceptr, const void*, size_t)>(gate_of_thread)(at(1), &byte, 1);
  EXPECT_EQ(last().launch.stream, CU_STREAM_PER_THREAD);
  EXPECT_EQ(last_call().name, "cuMemcpyHtoD_v2_ptds");
}

TEST_F(ShimTest, ADriverThatHandsOutOtherAddressesIsGatedByVersion) {
  const auto ask = [&](const char* symbol, int version, cuuint64_t flags) {
    void* found = nullptr;
    CALL(cuGetProcAddress)(symbol, &found, version, flags, nullptr);
    return found;
  };
  const auto per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  const std::vector<std::tuple<const char*, int, cuuint64_t>> questions = {{"cuLaunchKernel", 4000, 0},
                                                                           {"cuLaunchKernel", 12000, per_thread},
                                                                           {"cuMemcpyHtoD", 3020, 0},
                                                                           {"cuMemcpyHtoD", 7000, per_thread},
                                                                           {"cuMemcpyBatchAsync", 12080, 0},
                                                                           {"cuMemcpyBatchAsync", 13000, 0},
                                                                           {"cuGraphInstantiate", 10000, 0},
                                                                           {"cuGraphInstantiate", 11040, 0},
                                                                           {"cuGraphInstantiate", 12000, 0},
                                                                           {"cuGraphInstantiate", 13000, per_thread},
                                                                           {"cuGraphInstantiateWithFlags", 12000, 0},
                                                                           {"cuGraphExecUpdate", 11000, 0},
                                                                           {"cuGraphExecUpdate", 13000, 0},
                                                                           {"cuStreamBeginCapture", 10000, 0},
                                                                           {"cuStreamBeginCapture", 10010, 0},
                                                                           {"cuGetProcAddress", 12000, 0}};
  std::vector<void*> usual;
  for (const auto& [symbol, version, flags] : questions) usual.push_back(ask(symbol, version, flags));
  fake->has_other_addresses = true;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const auto& [symbol, version, flags] = questions[i];
    EXPECT_NE(usual[i], shim->driver_function(symbol)) << symbol;
    EXPECT_EQ(ask(symbol, version, flags), usual[i]) << symbol << " " << version;
  }
  fake->has_other_addresses = false;
}

TEST_F(ShimTest, TheFirstVersionOfGetProcAddressIsGatedToo) {
  void* found = nullptr;
  function<CUresult (*)(const char*, void**, int, cuuint64_t)>("cuGetProcAddress")("cuLaunchKernel", &found, 11030, 0);
  ASSERT_NE(found, nullptr);
  EXPECT_NE(found, shim->driver_function("cuLaunchKernel"));
}

// --- Kernels

TEST_F(ShimTest, AKernelIsReportedBeforeAndAfterItsLaunch) {
  FakeKernel kernel{.name = "add", .offsets = {0, 8, 16}, .bytes = {8, 8, 4}};
  std::uint64_t first = at(2), inside = at(3) + 4096;
  int count = 5;
  std::array<void*, 3> each{&first, &inside, &count};
  fake->result = CUDA_ERROR_LAUNCH_FAILED;
  EXPECT_EQ(launch(known(kernel), each.data()), CUDA_ERROR_LAUNCH_FAILED);
  const Told& told = last();
  EXPECT_EQ(told.launch.kind, CudaLaunch::Kind::kernel);
  EXPECT_EQ(told.launch.function, kernel.function());
  EXPECT_EQ(told.launch.stream, kStream);
  EXPECT_TRUE(told.launch.is_complete);
  EXPECT_FALSE(told.launch.is_captured);
  EXPECT_EQ(told.ids(), (Accesses{{2, kEither}, {3, kEither}}));
  EXPECT_EQ(told.touches.back().address, inside);
  EXPECT_TRUE(told.is_over);
  EXPECT_EQ(told.result, CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(ShimTest, NullStaleForeignAndUnalignedPointersAreNotTouches) {
  struct [[gnu::packed]] {
    std::uint32_t before = 0;
    std::uint64_t unaligned = at(1);
    std::uint32_t after = 0;
  } structure;
  FakeKernel kernel{.name = "k", .offsets = {0, 8, 16, 24}, .bytes = {8, 8, 8, sizeof structure}};
  std::uint64_t null = 0, stale = at(2) + kBytes, foreign = 0x7fff'0000'0000;
  std::array<void*, 4> each{&null, &stale, &foreign, &structure};
  launch(known(kernel), each.data());
  EXPECT_TRUE(last().touches.empty());
  EXPECT_TRUE(last().launch.is_complete);
}

TEST_F(ShimTest, StructuresByValueAreReadUpToTheLastOfFourKilobytes) {
  std::array<std::uint64_t, 512> structure{};
  structure[0] = at(0);
  structure[255] = at(1) + 1;
  structure[511] = at(7) + kBytes - 1;
  FakeKernel kernel{.name = "k", .offsets = {0}, .bytes = {sizeof structure}};
  std::array<void*, 1> each{&structure};
  launch(known(kernel), each.data());
  EXPECT_EQ(last().ids(), (Accesses{{0, kEither}, {1, kEither}, {7, kEither}}));
}

TEST_F(ShimTest, MoreTouchesThanThereIsRoomForOnTheStackAreAllReported) {
  std::array<std::uint64_t, 512> structure{};
  for (std::size_t i = 0; i < structure.size(); ++i) structure[i] = at(i % 8) + i;
  FakeKernel kernel{.name = "k", .offsets = {0}, .bytes = {sizeof structure}};
  std::array<void*, 1> each{&structure};
  launch(known(kernel), each.data());
  EXPECT_EQ(last().touches.size(), 512u);
}

TEST_F(ShimTest, AListOfTensorsIsReadAsFarAsThisLaunchUsesIt) {
  struct Metadata {  // TensorListMetadata<2> of PyTorch for CUDA 12
    std::uint64_t addresses[2][64];
    std::int64_t numbers[64];
    unsigned char block_to_tensor[320];
    int block_to_chunk[320];
    int start;
  } metadata{};
  for (auto& list : metadata.addresses)
    for (auto& address : list) address = at(6);  // left from before
  metadata.addresses[0][0] = at(1);
  metadata.addresses[1][0] = at(2);
  metadata.addresses[0][1] = at(3);
  metadata.addresses[1][1] = at(4);
  metadata.block_to_tensor[1] = 1;
  std::uint64_t other = at(5);
  FakeKernel kernel{.name = "_ZN2at6native25multi_tensor_apply_kernelINS0_18TensorListMetadataILi2EEEEEvT_",
                    .offsets = {0, sizeof metadata},
                    .bytes = {sizeof metadata, 8}};
  std::array<void*, 2> each{&metadata, &other};
  launch(known(kernel), each.data(), nullptr, 2);
  EXPECT_EQ(last().ids(), (Accesses{{1, kEither}, {2, kEither}, {3, kEither}, {4, kEither}, {5, kEither}}));
  launch(known(kernel), each.data(), nullptr, 1);
  EXPECT_EQ(last().ids(), (Accesses{{1, kEither}, {2, kEither}, {5, kEither}}));
}

TEST_F(ShimTest, LibrariesKernelsAreAskedForAsWhatTheyAre) {
  FakeKernel kernel{.name = "k", .offsets = {0}, .bytes = {8}, .is_library_kernel = true};
  std::uint64_t pointer = at(4);
  std::array<void*, 1> each{&pointer};
  launch(known(kernel), each.data());
  EXPECT_EQ(last().ids(), (Accesses{{4, kEither}}));
  EXPECT_TRUE(last().launch.is_complete);
}

TEST_F(ShimTest, NoParametersIsBelievedOnlyWhereTheOtherKindOfHandleHasNoneEither) {
  FakeKernel kernel{.name = "k", .offsets = {0}, .bytes = {8}, .is_library_kernel = true};
  kernel.as_the_other = CUDA_ERROR_INVALID_VALUE;
  std::uint64_t pointer = at(4);
  std::array<void*, 1> each{&pointer};
  launch(known(kernel), each.data());
  EXPECT_EQ(last().ids(), (Accesses{{4, kEither}}));
}

TEST_F(ShimTest, UnknownLayoutsAreNeverNothing) {
  std::uint64_t pointer = at(4);
  std::array<void*, 1> each{&pointer};
  FakeKernel refused{.name = "k", .offsets = {0}, .bytes = {8}, .answer = CUDA_ERROR_NOT_SUPPORTED};
  FakeKernel unregistered;
  for (const CUfunction function : {known(refused), unregistered.function()}) {
    launch(function, each.data());
    EXPECT_FALSE(last().launch.is_complete);
  }
  refused.answer = CUDA_SUCCESS;
  launch(refused.function(), each.data());
  EXPECT_TRUE(last().launch.is_complete) << "asked again";
  EXPECT_EQ(last().ids(), (Accesses{{4, kEither}}));
  FakeKernel none;
  launch(known(none), nullptr);
  EXPECT_TRUE(last().launch.is_complete);
}

TEST_F(ShimTest, PackedArgumentsAreReadWithOrWithoutALayout) {
  std::array<std::uint64_t, 2> buffer{at(1), at(2)};
  std::size_t bytes = sizeof buffer;
  std::array<void*, 5> extra{CU_LAUNCH_PARAM_BUFFER_POINTER, buffer.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                             CU_LAUNCH_PARAM_END};
  FakeKernel unknown;
  launch(unknown.function(), nullptr, extra.data());
  EXPECT_EQ(last().ids(), (Accesses{{1, kEither}, {2, kEither}}));
  EXPECT_TRUE(last().launch.is_complete);
}

TEST_F(ShimTest, AllWaysToLaunchAreSeen) {
  FakeKernel kernel{.name = "k", .offsets = {0}, .bytes = {8}};
  const CUfunction handle = known(kernel);
  std::uint64_t pointer = at(3);
  std::array<void*, 1> each{&pointer};
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.hStream = kStream;
  const auto expect_seen = [&](const char* how, bool is_complete = true) {
    SCOPED_TRACE(how);
    ASSERT_EQ(watcher.told.size(), 1u);
    EXPECT_EQ(last().launch.function, handle);
    EXPECT_EQ(last().launch.stream, kStream);
    EXPECT_EQ(last().launch.is_complete, is_complete);
    EXPECT_EQ(last().ids(), is_complete ? (Accesses{{3, kEither}}) : Accesses{});
    watcher.told.clear();
  };
  CALL(cuLaunchKernelEx)(&config, handle, each.data(), nullptr);
  expect_seen("cuLaunchKernelEx");
  CALL(cuLaunchCooperativeKernel)(handle, 1, 1, 1, 1, 1, 1, 0, kStream, each.data());
  expect_seen("cuLaunchCooperativeKernel");
  CUDA_LAUNCH_PARAMS one{};
  one.function = handle;
  one.gridDimX = 1;
  one.hStream = kStream;
  one.kernelParams = each.data();
  function<CUresult (*)(CUDA_LAUNCH_PARAMS*, unsigned, unsigned)>("cuLaunchCooperativeKernelMultiDevice")(&one, 1, 0);
  expect_seen("cuLaunchCooperativeKernelMultiDevice");
  function<CUresult (*)(CUfunction, int, int, CUstream)>("cuLaunchGridAsync")(handle, 1, 1, kStream);
  expect_seen("cuLaunchGridAsync", false);
}

TEST_F(ShimTest, ALaunchThatTheObserverRefusesDoesNotReachTheDriver) {
  FakeKernel kernel;
  watcher.allows = false;
  fake->calls.clear();
  EXPECT_EQ(launch(known(kernel), nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(last_call().name, "");
  EXPECT_FALSE(last().is_over);
}

TEST_F(ShimTest, LaunchesOfTheObserverItselfAreNotReported) {
  FakeKernel kernel;
  known(kernel);
  watcher.within = [&] { launch(kernel.function(), nullptr); };
  launch(kernel.function(), nullptr);
  EXPECT_EQ(watcher.told.size(), 1u);
  EXPECT_EQ(fake->calls.size(), 2u);
  watcher.within = nullptr;
  launch(kernel.function(), nullptr);
  EXPECT_EQ(watcher.told.size(), 2u);
}

TEST_F(ShimTest, AFunctionThatTookTheHandleOfAnUnloadedOneHasItsOwnLayout) {
  FakeKernel kernel{.name = "k", .offsets = {0}, .bytes = {8}};
  std::array<std::uint64_t, 2> structure{0, at(1)};
  std::array<void*, 1> each{&structure};
  launch(known(kernel), each.data());
  EXPECT_TRUE(last().touches.empty());
  function<CUresult (*)(CUlibrary)>("cuLibraryUnload")(nullptr);
  kernel.bytes = {16};
  launch(kernel.function(), each.data());
  EXPECT_EQ(last().ids(), (Accesses{{1, kEither}}));
}

TEST_F(ShimTest, LaunchesIntoAGraphAreMarked) {
  FakeKernel kernel;
  known(kernel);
  fake->capturing.insert(kStream);
  CALL(cuStreamBeginCapture)(kStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  launch(kernel.function(), nullptr);
  EXPECT_TRUE(last().launch.is_captured);
  fake->capturing.clear();
  launch(kernel.function(), nullptr);
  EXPECT_FALSE(last().launch.is_captured);
}

TEST_F(ShimTest, ManyThreadsLaunchAtOnce) {
  class Counter final : public LaunchObserver {
   public:
    bool before(const CudaLaunch& launch) noexcept override {
      right += launch.touches.size() == 1 && launch.touches[0].range == reinterpret_cast<std::uint64_t>(launch.stream);
      return true;
    }
    void after(const CudaLaunch&, int) noexcept override { ++over; }
    std::atomic<int> right{0}, over{0};
  } counter;
  shim->observe(&counter);
  fake->writes_down = false;
  FakeKernel kernel{.name = "k", .offsets = {0}, .bytes = {8}};
  known(kernel);
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      std::uint64_t pointer = at(thread) + thread;
      std::array<void*, 1> each{&pointer};
      for (int i = 0; i < 2000; ++i)
        CALL(cuLaunchKernel)(kernel.function(), 1, 1, 1, 1, 1, 1, 0, reinterpret_cast<CUstream>(thread), each.data(),
                             nullptr);
    });
  for (std::thread& thread : threads) thread.join();
  fake->writes_down = true;
  EXPECT_EQ(counter.right, 16'000);
  EXPECT_EQ(counter.over, 16'000);
  shim->observe(nullptr);
}

// --- Copies and sets

TEST_F(ShimTest, CopiesSayWhichSideIsReadAndWhichIsWritten) {
  std::array<char, 64> host{};
  CALL(cuMemcpyHtoDAsync)(at(1), host.data(), 64, kStream);
  EXPECT_EQ(last().ids(), (Accesses{{1, kWrite}}));
  EXPECT_EQ(last().launch.kind, CudaLaunch::Kind::copy);
  EXPECT_EQ(last().launch.stream, kStream);
  CALL(cuMemcpyDtoH)(host.data(), at(2), 64);
  EXPECT_EQ(last().ids(), (Accesses{{2, kRead}}));
  EXPECT_EQ(last().launch.stream, nullptr);
  CALL(cuMemcpyDtoDAsync)(at(1), at(2), 64, kStream);
  EXPECT_EQ(last().ids(), (Accesses{{1, kWrite}, {2, kRead}}));
  CALL(cuMemcpyAsync)(at(3), at(4), 64, kStream);
  EXPECT_EQ(last().ids(), (Accesses{{3, kWrite}, {4, kRead}}));
  CALL(cuMemcpyPeerAsync)(at(3), nullptr, at(4), nullptr, 64, kStream);
  EXPECT_EQ(last().ids(), (Accesses{{3, kWrite}, {4, kRead}}));
  CALL(cuMemcpyDtoA)(nullptr, 0, at(5), 64);
  EXPECT_EQ(last().ids(), (Accesses{{5, kRead}}));
  CALL(cuMemcpyAtoD)(at(5), nullptr, 0, 64);
  EXPECT_EQ(last().ids(), (Accesses{{5, kWrite}}));
  CALL(cuMemcpyAtoA)(nullptr, 0, nullptr, 0, 64);
  EXPECT_TRUE(last().touches.empty());
  CALL(cuMemcpyDtoD)(at(1), at(2) + kBytes, 64);
  EXPECT_EQ(last().ids(), (Accesses{{1, kWrite}})) << "from beyond a range";
}

TEST_F(ShimTest, StreamsThatWaitForOthersAreTold) {
  CALL(cuStreamWaitEvent)(kStream, nullptr, 0);
  CALL(cuStreamWaitEvent)(nullptr, nullptr, 0);
  EXPECT_EQ(watcher.waits, (std::vector<CUstream_st*>{kStream, nullptr}));
}

TEST_F(ShimTest, RowsAndSlicesReachFromTheirFirstByteToTheirLast) {
  CUDA_MEMCPY2D flat{};
  flat.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  flat.srcDevice = at(0);
  flat.srcPitch = 2 * kBytes;
  flat.srcXInBytes = 8;
  flat.srcY = 1;
  flat.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  flat.WidthInBytes = 16;
  flat.Height = 2;
  CALL(cuMemcpy2DAsync)(&flat, kStream);
  EXPECT_EQ(last().ids(), (Accesses{{1, kRead}, {2, kRead}}));
  flat.Height = 0;
  CALL(cuMemcpy2D)(&flat);
  EXPECT_TRUE(last().touches.empty());

  CUDA_MEMCPY3D deep{};
  deep.srcMemoryType = CU_MEMORYTYPE_HOST;
  deep.srcHost = &flat;
  deep.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  deep.dstDevice = at(3);
  deep.dstPitch = kBytes;
  deep.dstHeight = 2;
  deep.WidthInBytes = 4;
  deep.Height = 1;
  deep.Depth = 3;
  CALL(cuMemcpy3DAsync)(&deep, kStream);
  EXPECT_EQ(last().ids(), (Accesses{{3, kWrite}, {4, kWrite}, {5, kWrite}}));
  CUDA_MEMCPY3D_PEER peer{};
  peer.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  peer.srcDevice = at(6);
  peer.srcPitch = 4;
  peer.WidthInBytes = 4;
  peer.Height = peer.Depth = 1;
  peer.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  CALL(cuMemcpy3DPeer)(&peer);
  EXPECT_EQ(last().ids(), (Accesses{{6, kRead}}));
}

TEST_F(ShimTest, BatchesAreOneLaunch) {
  std::array<CUdeviceptr, 2> to{at(1), at(2)}, from{at(3), at(4)};
  std::array<size_t, 2> bytes{8, 8};
  CALL(cuMemcpyBatchAsync)(to.data(), from.data(), bytes.data(), 2, nullptr, nullptr, 0, kStream);
  EXPECT_EQ(watcher.told.size(), 1u);
  EXPECT_EQ(last().launch.stream, kStream);
  EXPECT_EQ(last().ids(), (Accesses{{1, kWrite}, {2, kWrite}, {3, kRead}, {4, kRead}}));
  size_t failed = 0;
  using Before13 = CUresult (*)(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*, size_t*, size_t,
                                size_t*, CUstream);
  function<Before13>("cuMemcpyBatchAsync")(to.data(), from.data(), bytes.data(), 1, nullptr, nullptr, 0, &failed,
                                           kStream);
  EXPECT_EQ(last().launch.stream, kStream);
  EXPECT_EQ(last().ids(), (Accesses{{1, kWrite}, {3, kRead}}));
  CUDA_MEMCPY3D_BATCH_OP box{};
  box.src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER,
             .op = {.ptr = {.ptr = at(5), .rowLength = 0, .layerHeight = 0, .locHint = {}}}};
  box.dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  box.extent = {.width = 1, .height = 1, .depth = 1};
  CALL(cuMemcpy3DBatchAsync)(1, &box, 0, kStream);
  EXPECT_EQ(last().ids(), (Accesses{{5, kRead}}));
  EXPECT_EQ(last().launch.stream, kStream);
}

TEST_F(ShimTest, DecompressionReadsAndWrites) {
  CUmemDecompressParams one{};
  one.src = reinterpret_cast<const void*>(at(1));
  one.srcNumBytes = 8;
  one.dst = reinterpret_cast<void*>(at(2));
  one.dstNumBytes = 64;
  one.dstActBytes = reinterpret_cast<cuuint32_t*>(at(3));
  CALL(cuMemBatchDecompressAsync)(&one, 1, 0, nullptr, kStream);
  EXPECT_EQ(last().ids(), (Accesses{{1, kRead}, {2, kWrite}, {3, kWrite}}));
  EXPECT_EQ(last().launch.stream, kStream);
}

TEST_F(ShimTest, WhatTheDriverRefusesIsNoCrashHere) {
  fake->result = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(CALL(cuLaunchKernelEx)(nullptr, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CALL(cuMemcpy2D)(nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CALL(cuMemcpy3DAsync)(nullptr, kStream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CALL(cuMemcpyBatchAsync)(nullptr, nullptr, nullptr, 3, nullptr, nullptr, 0, kStream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CALL(cuMemcpy3DBatchAsync)(3, nullptr, 0, kStream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CALL(cuMemBatchDecompressAsync)(nullptr, 3, 0, nullptr, kStream), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ShimTest, SetsWrite) {
  CALL(cuMemsetD8Async)(at(1), 0, 5, kStream);
  EXPECT_EQ(last().ids(), (Accesses{{1, kWrite}}));
  EXPECT_EQ(last().launch.kind, CudaLaunch::Kind::set);
  CALL(cuMemsetD32)(at(1), 0, kBytes / 2 + 1);  // elements of 4 bytes: over the gap into the next
  EXPECT_EQ(last().ids(), (Accesses{{1, kWrite}, {2, kWrite}}));
  CALL(cuMemsetD16)(at(1), 0, kBytes);  // ends where the next begins
  EXPECT_EQ(last().ids(), (Accesses{{1, kWrite}}));
  CALL(cuMemsetD2D8Async)(at(1), 2 * kBytes, 0, 1, 3, kStream);
  EXPECT_EQ(last().ids(), (Accesses{{1, kWrite}, {2, kWrite}, {3, kWrite}}));
}

// --- Graphs

class GraphTest : public ShimTest {
 protected:
  GraphTest() {
    known(kernel);
    each = {&pointer};
    graph.nodes.push_back({.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = kernel_node(&each)});
  }
  CUDA_KERNEL_NODE_PARAMS_v2 kernel_node(std::array<void*, 1>* values) {
    CUDA_KERNEL_NODE_PARAMS_v2 node{};
    node.func = kernel.function();
    node.gridDimX = 1;
    node.kernelParams = values->data();
    return node;
  }
  CUgraphExec instantiated() {
    CUgraphExec executable = nullptr;
    EXPECT_EQ(CALL(cuGraphInstantiate)(&executable, graph.graph(), 0), CUDA_SUCCESS);
    return executable;
  }
  Accesses launched(CUgraphExec executable) {
    CALL(cuGraphLaunch)(executable, kStream);
    EXPECT_EQ(last().launch.kind, CudaLaunch::Kind::graph);
    EXPECT_EQ(last().launch.graph, executable);
    return last().ids();
  }
  FakeKernel kernel{.name = "k", .offsets = {0}, .bytes = {8}};
  std::uint64_t pointer = at(1);
  std::array<void*, 1> each{};
  FakeGraph graph;
};

TEST_F(GraphTest, AGraphTouchesWhatItsNodesAndTheirChildrenTouch) {
  FakeNode copy{.type = CU_GRAPH_NODE_TYPE_MEMCPY};
  copy.copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.copy.srcDevice = at(2);
  copy.copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.copy.dstDevice = at(3);
  copy.copy.WidthInBytes = 8;
  copy.copy.Height = copy.copy.Depth = 1;
  FakeGraph child;
  child.nodes.push_back({.type = CU_GRAPH_NODE_TYPE_MEMSET});
  child.nodes.back().set = {.dst = at(4), .pitch = 0, .value = 0, .elementSize = 4, .width = 2, .height = 1};
  graph.nodes.push_back(copy);
  graph.nodes.push_back({.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = &child});
  graph.nodes.push_back({.type = CU_GRAPH_NODE_TYPE_EMPTY});
  const CUgraphExec executable = instantiated();
  EXPECT_EQ(launched(executable), (Accesses{{1, kEither}, {2, kRead}, {3, kWrite}, {4, kWrite}}));
  EXPECT_TRUE(last().launch.is_complete);
  EXPECT_EQ(last().launch.stream, kStream);
}

TEST_F(GraphTest, RangesAreThoseOfTheTimeOfTheLaunch) {
  const CUgraphExec executable = instantiated();
  ASSERT_TRUE(shim->remove(at(1)));
  EXPECT_EQ(launched(executable), Accesses{});
  ASSERT_TRUE(shim->add({.begin = at(1), .bytes = kBytes, .id = 77}));
  EXPECT_EQ(launched(executable), (Accesses{{77, kEither}}));
}

TEST_F(GraphTest, AChangedNodeAddsWhatItUsesNow) {
  const CUgraphExec executable = instantiated();
  std::uint64_t other = at(5);
  std::array<void*, 1> others{&other};
  const auto node = kernel_node(&others);
  CALL(cuGraphExecKernelNodeSetParams)(executable, nullptr, &node);
  EXPECT_EQ(launched(executable), (Accesses{{1, kEither}, {5, kEither}}));
  fake->result = CUDA_ERROR_INVALID_VALUE;
  other = at(6);
  CALL(cuGraphExecKernelNodeSetParams)(executable, nullptr, &node);
  fake->result = CUDA_SUCCESS;
  EXPECT_EQ(launched(executable), (Accesses{{1, kEither}, {5, kEither}})) << "that failed";
  CUgraphNodeParams any{};
  any.type = CU_GRAPH_NODE_TYPE_MEMSET;
  any.memset.dst = at(7);
  any.memset.elementSize = 1;
  any.memset.width = any.memset.height = 1;
  CALL(cuGraphExecNodeSetParams)(executable, reinterpret_cast<CUgraphNode>(&other), &any);
  EXPECT_EQ(launched(executable), (Accesses{{1, kEither}, {5, kEither}, {7, kWrite}}));
  CALL(cuGraphExecNodeSetParams)(executable, nullptr, &any);
  EXPECT_EQ(launched(executable), (Accesses{{1, kEither}, {7, kWrite}, {7, kWrite}}))
      << "in the place of the one before";
  CALL(cuGraphExecUpdate)(executable, graph.graph(), nullptr);
  EXPECT_EQ(launched(executable), (Accesses{{1, kEither}})) << "read anew";
}

TEST_F(GraphTest, WhatCannotBeReadIsNotComplete) {
  graph.nodes.push_back({.type = CU_GRAPH_NODE_TYPE_CONDITIONAL});
  launched(instantiated());
  EXPECT_FALSE(last().launch.is_complete) << "a condition";
  graph.nodes.pop_back();
  FakeKernel unknown;
  graph.nodes.front().kernel.func = unknown.function();
  launched(instantiated());
  EXPECT_FALSE(last().launch.is_complete) << "an unknown layout";
  FakeGraph elsewhere;
  launched(reinterpret_cast<CUgraphExec>(&elsewhere));
  EXPECT_FALSE(last().launch.is_complete) << "a graph that nobody saw instantiated";
  graph.nodes.front().kernel.func = kernel.function();
  const CUgraphExec executable = instantiated();
  launched(executable);
  EXPECT_TRUE(last().launch.is_complete);
  const auto node = graph.nodes.front().kernel;
  graph.nodes.front().kernel.func = unknown.function();
  CALL(cuGraphExecKernelNodeSetParams)(executable, nullptr, &graph.nodes.front().kernel);
  launched(executable);
  EXPECT_FALSE(last().launch.is_complete) << "a node that is now of an unknown layout";
  graph.nodes.front().kernel = node;
  launched(instantiated());
  EXPECT_TRUE(last().launch.is_complete);
  CALL(cuGraphExecDestroy)(executable);
  launched(executable);
  EXPECT_FALSE(last().launch.is_complete) << "destroyed";
}

TEST_F(GraphTest, LibrariesKernelsInGraphsAreRead) {
  kernel.is_library_kernel = true;
  graph.nodes.front().kernel.func = nullptr;
  graph.nodes.front().kernel.kern = reinterpret_cast<CUkernel>(&kernel);
  EXPECT_EQ(launched(instantiated()), (Accesses{{1, kEither}}));
}

}  // namespace
}  // namespace spillway
