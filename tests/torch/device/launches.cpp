#include "launches.h"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "driver.h"
#include "streams.h"

namespace spillway {
namespace {

std::mutex mutex;
std::exception_ptr thrown;  // GUARDED_BY(mutex): the first one

void run(void** parameters) {
  const std::unique_ptr<DeviceWork> work(*static_cast<DeviceWork**>(parameters[0]));
  thread_local const bool has_threads = (at::init_num_threads(), true);
  static_cast<void>(has_threads);
  // Nobody sees what a kernel does inside.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::NoGradGuard no_grad;
  const at::RecordFunctionGuard no_callbacks(false);
  try {
    work->run();
  } catch (...) {
    const std::lock_guard lock(mutex);
    if (!thrown) thrown = std::current_exception();
  }
}

// One for each layout of parameters, for good: the driver is asked for a function's layout only once.
CUfunction function_of(const DeviceWork& work) {
  static std::map<std::pair<std::string, std::size_t>, std::unique_ptr<StrictKernel>>& all =
      *new std::map<std::pair<std::string, std::size_t>, std::unique_ptr<StrictKernel>>;
  const std::lock_guard lock(mutex);
  auto& kernel = all[{work.name, work.memory.size()}];
  if (!kernel) {
    kernel = std::make_unique<StrictKernel>();
    kernel->name = work.name;
    kernel->parameters.assign(1 + work.memory.size(), sizeof(void*));
    kernel->run = run;
    kernel->memory = [](void** parameters) { return (*static_cast<DeviceWork**>(parameters[0]))->memory; };
  }
  return kernel->function();
}

}  // namespace

void launch(DeviceWork work) {
  auto owned = std::make_unique<DeviceWork>(std::move(work));
  const CUfunction function = function_of(*owned);
  // The work itself, then the pointers that a kernel of a GPU would be given.
  DeviceWork* pointer = owned.get();
  std::vector<CUdeviceptr> addresses;
  for (const auto& one : owned->memory) addresses.push_back(one.address);
  std::vector<void*> parameters{static_cast<void*>(&pointer)};
  for (CUdeviceptr& address : addresses) parameters.push_back(&address);
  check(device_driver().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, current_stream(), parameters.data(), nullptr),
        "launch " + pointer->name);
  static_cast<void>(owned.release());  // It has been enqueued, and may have run.
}

void launch_and_wait(DeviceWork work) {
  auto own = std::make_shared<std::exception_ptr>();
  work.run = [own, run = std::move(work.run)] {
    try {
      run();
    } catch (...) {
      *own = std::current_exception();
    }
  };
  launch(std::move(work));
  synchronize(current_stream());
  if (*own) std::rethrow_exception(*own);
}

void throw_what_was_thrown() {
  std::exception_ptr found;
  {
    const std::lock_guard lock(mutex);
    found = std::exchange(thrown, nullptr);
  }
  if (found) std::rethrow_exception(found);
}

}  // namespace spillway
