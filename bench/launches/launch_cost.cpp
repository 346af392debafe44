// What the launch shim adds to a launch, beside the same call of the driver itself. The driver here is one without a
// GPU, whose launches do nothing: the difference is the shim's own time.
#include <cuda.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "fake/fake_driver.h"
#include "hook/cuda/launch.h"

namespace {

using namespace spillway;

constexpr std::uint64_t kBase = std::uint64_t{1} << 40, kBytes = 2 << 20, kRanges = 10'000;
constexpr int kCalls = 100'000, kRounds = 9;

class Nobody final : public LaunchObserver {
 public:
  bool before(const CudaLaunch& launch) noexcept override {
    touches += launch.touches.size();
    return true;
  }
  void after(const CudaLaunch&, int) noexcept override {}
  std::uint64_t touches = 0;
};

class Quiet final : public LaunchObserver {  // for several threads
 public:
  bool before(const CudaLaunch&) noexcept override { return true; }
  void after(const CudaLaunch&, int) noexcept override {}
};

// Nanoseconds a call: the least of several rounds, since all that disturbs adds.
double nanoseconds(const std::function<void()>& call) {
  double least = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
    least = std::min(least, taken.count() / kCalls);
  }
  return least;
}

std::uint64_t at(std::uint64_t range) { return kBase + range * kBytes + 4096; }

struct Arguments {
  const char* what;
  FakeKernel kernel;
  std::vector<void*> each;
};

// `call` with the driver's function, and with the one that callers of the shim have.
template <class Function>
void row(const char* what, CudaShim* shim, void* library, const char* name, const std::function<void(Function)>& call) {
  const auto through = reinterpret_cast<Function>(::dlsym(library, name));
  const auto directly = reinterpret_cast<Function>(shim->driver_function(name));
  static Nobody nobody;
  shim->observe(nullptr);
  const double alone = nanoseconds([&] { call(directly); }), unwatched = nanoseconds([&] { call(through); });
  shim->observe(&nobody);
  nobody.touches = 0;
  const double watched = nanoseconds([&] { call(through); });
  fmt::print("{:<44} {:>9.1f} {:>12.1f} {:>10.1f} {:>9.1f}   {} pointers found\n", what, alone, unwatched, watched,
             watched - alone, nobody.touches / (static_cast<std::uint64_t>(kCalls) * kRounds));
}

void table(const char* title, CudaShim* shim, void* library, std::vector<Arguments>& launches) {
  fmt::print("{}\n{:<44} {:>9} {:>12} {:>10} {:>9}\n", title, "nanoseconds a launch", "driver", "not watched",
             "watched", "added");
  using LaunchKernel = decltype(&::cuLaunchKernel);
  for (Arguments& launch : launches)
    row<LaunchKernel>(launch.what, shim, library, "cuLaunchKernel", [&](LaunchKernel function) {
      function(launch.kernel.function(), 36, 1, 1, 128, 1, 1, 0, nullptr, launch.each.data(), nullptr);
    });
  using Copy = decltype(&::cuMemcpyHtoDAsync);
  const std::vector<char> host(1 << 20);
  row<Copy>("copy of 1 MiB from host memory", shim, library, "cuMemcpyHtoDAsync_v2",
            [&](Copy function) { function(at(kRanges - 1), host.data(), host.size(), nullptr); });
}

void threads(CudaShim* shim, void* library, Arguments& launch, unsigned count) {
  static Quiet quiet;
  shim->observe(&quiet);
  const auto through = reinterpret_cast<decltype(&::cuLaunchKernel)>(::dlsym(library, "cuLaunchKernel"));
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> running;
  for (unsigned thread = 0; thread < count; ++thread)
    running.emplace_back([&] {
      for (int i = 0; i < kCalls * 10; ++i)
        through(launch.kernel.function(), 1, 1, 1, 128, 1, 1, 0, nullptr, launch.each.data(), nullptr);
    });
  for (std::thread& thread : running) thread.join();
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
  fmt::print("{:<44} {:>33.1f}\n", fmt::format("{}, {} thread{} at once", launch.what, count, count == 1 ? "" : "s"),
             taken.count() / (kCalls * 10));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    fmt::print(stderr, "usage: launch_cost SHIM DRIVER: libspillway_cuda.so and libfake_cuda.so\n");
    return 2;
  }
  const auto shim_path = std::filesystem::absolute(arguments[1]), driver_path = std::filesystem::absolute(arguments[2]);
  ::setenv(kCudaDriverVariable, driver_path.c_str(), 1);
  void* const library = ::dlopen(shim_path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fmt::print(stderr, "error: {}\n", ::dlerror());
    return 1;
  }
  CudaShim* const shim = reinterpret_cast<CudaShim* (*)()>(::dlsym(library, kCudaShimSymbol))();
  const auto find_fake = reinterpret_cast<FakeDriverOf>(shim->driver_function("fake_cuda"));
  if (find_fake == nullptr) {
    fmt::print(stderr, "error: {} is not the driver without a GPU\n", arguments[2]);
    return 1;
  }
  FakeDriver* const fake = find_fake();
  fake->writes_down = false;
  for (std::uint64_t range = 0; range < kRanges; ++range)
    if (!shim->add({.begin = kBase + range * kBytes, .bytes = kBytes, .id = range})) return 1;

  // What an element-wise kernel takes: a structure of sizes, pointers, scalars.
  static struct {
    int sizes[8] = {1024, 3072, 64, 1, 0, 0, 0, 0};
    std::uint64_t pointers[3] = {at(17), at(4711), at(9999)};
    float scalars[2] = {0.5f, 2.0f};
  } elementwise;
  static std::array<std::uint64_t, 4> gemm{at(1), at(5000), at(8000), 0};  // a bias that there is not
  static std::array<int, 12> dimensions{4096, 4096, 1024, 4096, 1024, 4096, 1, 0, 1, 0, 128, 128};
  static struct Metadata {  // FusedOptimizerTensorListMetadata<4> of PyTorch for CUDA 12
    std::uint64_t addresses[4][36];
    std::int64_t numbers[36];
    std::uint64_t steps[36];
    unsigned char block_to_tensor[320];
    int block_to_chunk[320];
    int start;
  } metadata{};
  for (std::uint64_t tensor = 0; tensor < 36; ++tensor) {
    for (std::uint64_t list = 0; list < 4; ++list) metadata.addresses[list][tensor] = at(list * 2500 + tensor * 61);
    metadata.steps[tensor] = at(tensor);
    metadata.block_to_tensor[tensor] = static_cast<unsigned char>(tensor);
  }
  static std::array<std::uint64_t, 512> unknown{};
  for (std::uint64_t i = 0; i < unknown.size(); ++i) unknown[i] = i % 2 == 0 ? at(i * 19) : i << 33;

  std::vector<Arguments> launches;
  launches.push_back(
      {"element-wise: 3 pointers in a structure", {.name = "e", .offsets = {0, 4}, .bytes = {4, 0}}, {}});
  static int number = 1 << 20;
  launches.back().kernel.offsets = {0, 8};
  launches.back().kernel.bytes = {4, sizeof elementwise};
  launches.back().each = {&number, &elementwise};
  launches.push_back({"matrix product: 3 pointers, 12 numbers", {.name = "g", .offsets = {}, .bytes = {}}, {}});
  for (std::size_t i = 0; i < gemm.size(); ++i) {
    launches.back().kernel.offsets.push_back(8 * i);
    launches.back().kernel.bytes.push_back(8);
    launches.back().each.push_back(&gemm[i]);
  }
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    launches.back().kernel.offsets.push_back(32 + 4 * i);
    launches.back().kernel.bytes.push_back(4);
    launches.back().each.push_back(&dimensions[i]);
  }
  launches.push_back({"fused optimizer: lists of 180 tensors",
                      {.name = "_ZN25multi_tensor_apply_kernelIN32FusedOptimizerTensorListMetadataILi4EEEEvT_",
                       .offsets = {0},
                       .bytes = {sizeof metadata}},
                      {&metadata}});
  launches.push_back({"4 KiB by value, every second word a pointer",
                      {.name = "s", .offsets = {0}, .bytes = {sizeof unknown}},
                      {&unknown}});
  for (Arguments& launch : launches) fake->kernels.insert(&launch.kernel);

  table(fmt::format("{} registered ranges of {} MiB", kRanges, kBytes >> 20).c_str(), shim, library, launches);
  fmt::print("\n");
  for (const unsigned running : {1u, 2u, 4u}) threads(shim, library, launches[0], running);
  shim->observe(nullptr);
}
