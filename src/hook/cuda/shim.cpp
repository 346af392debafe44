#include "hook/cuda/shim.h"

#include <pthread.h>

#include <new>
#include <string_view>

#include "hook/cuda/gates.h"

namespace spillway {
namespace {

KernelLayout ask_driver(CUfunc_st* function) { return Shim::of_this_process().driver.layout_of(function); }

Shim* made = nullptr;  // for a child that is forked while it is being made

CUresult no_driver() { return CUDA_ERROR_NO_DEVICE; }
CUresult not_in_this_driver() { return CUDA_ERROR_NOT_FOUND; }

}  // namespace

Shim::Shim() : scanner(ask_driver) {
  made = this;
  ::pthread_atfork(nullptr, nullptr, [] {
    made->observer_.store(nullptr, std::memory_order_relaxed);
    made->in_child_.store(true, std::memory_order_relaxed);
  });
  for (const Gate& gate : gates()) gate.real->store(driver.function(gate.name), std::memory_order_relaxed);
}

Shim& Shim::of_this_process() noexcept {
  alignas(Shim) static std::byte room[sizeof(Shim)];
  static Shim* const shim = new (room) Shim;
  return *shim;
}

void* bound_function(const char* name) noexcept {
  const Shim& shim = Shim::of_this_process();
  if (shim.driver.library == nullptr) return reinterpret_cast<void*>(&no_driver);
  void* const real = shim.driver.function(name);
  if (real == nullptr) return reinterpret_cast<void*>(&not_in_this_driver);
  for (const Gate& gate : gates())
    if (std::string_view(gate.name) == name) return gate.function;
  return real;
}

}  // namespace spillway

extern "C" [[gnu::visibility("default")]] spillway::CudaShim* spillway_cuda_shim() noexcept {
  return &spillway::Shim::of_this_process();
}

// For forward.S: the function behind the name at this place of functions.txt.
extern "C" const char* const spillway_cuda_names[];
extern "C" [[gnu::visibility("hidden")]] void* spillway_cuda_bound_function(std::uint64_t place) noexcept {
  return spillway::bound_function(spillway_cuda_names[place]);
}
