// Where the preloaded library enters, and where PyTorch calls us: its allocator and its operators' callbacks.
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "hook/torch/cuda/install.h"
#include "hook/torch/device_tensors.h"
#include "hook/torch/dry_memory.h"
#include "hook/torch/gpu_memory.h"
#include "hook/torch/hook.h"
#include "hook/torch/paged_memory.h"
#include "hook/torch/plain_memory.h"
#include "hook/torch/pytorch.h"
#include "session/hook_side.h"

namespace spillway {
namespace {

Hook* hook = nullptr;  // the process's one session; never destroyed, since tensors die after everything else

// What an allocator of a GPU gets. Native sizes are multiples of 512 bytes, too, and so is where they begin.
class GpuTensors final : public DeviceTensors {
 public:
  GpuTensors(int index, std::size_t budget) : index_(index), budget_(budget) {}
  int device_index() const noexcept override { return index_; }
  std::size_t budget_bytes() const noexcept override { return budget_; }
  void* allocate(std::size_t bytes, CUstream_st* stream) override {
    constexpr std::size_t kGranule = 512;
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + kGranule - 1) / kGranule * kGranule;
    return hook->allocate(rounded, stream);
  }
  void free(void* memory) noexcept override { hook->free(memory); }
  void record_stream(void* memory, CUstream_st* stream) override { hook->record_stream(memory, stream); }
  bool contains(const void* address) const noexcept override { return hook->manages(address); }

 private:
  int index_;
  std::size_t budget_;
};

void free_tensor(void* memory) {
  c10::profiledCPUMemoryReporter().Delete(memory);
  hook->free(memory);
}

// A DataPtr's context must be its data, and there must be a raw deleter: oneDNN relies on both.
class TensorAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* memory = bytes == 0 ? nullptr : hook->allocate(bytes);
    c10::profiledCPUMemoryReporter().New(memory, bytes);
    return {memory, memory, &free_tensor, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_tensor; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

// Of the device `meta`, in a dry run. PyTorch's own gives all tensors the same address, null.
void free_meta_tensor(void* memory) { hook->free(memory); }
class MetaAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* memory = bytes == 0 || hook->in_child() ? nullptr : hook->allocate(bytes);
    return {memory, memory, &free_meta_tensor, c10::Device(c10::DeviceType::Meta)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_meta_tensor; }
  void copy_data(void*, const void*, std::size_t) const override {}  // There is nothing to copy.
};

struct OptimizerStep final : at::ObserverContext {};

// A thread runs one at a time, and there are very many: they all lie in the same place.
struct OutermostOperator final : at::ObserverContext {
  bool hides_inner = false;  // what it calls is told to nobody

  static void* operator new(std::size_t) noexcept { return &place; }
  static void operator delete(void*) noexcept {}

 private:
  struct alignas(at::ObserverContext) Place {
    std::byte bytes[2 * sizeof(at::ObserverContext)];
  };
  static thread_local Place place;
};
thread_local OutermostOperator::Place OutermostOperator::place;
static_assert(sizeof(OutermostOperator) <= 2 * sizeof(at::ObserverContext));

// Nobody else (a profiler) is told of operators.
bool are_alone() {
  const auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION);
  return callbacks && callbacks->callbacks_.size() == 1;
}

bool starts_with(const char* text, const char* prefix) { return std::strncmp(text, prefix, std::strlen(prefix)) == 0; }

// One for each node of a backward pass, around the operators that it calls.
bool is_autograds_own(const char* name) { return starts_with(name, "autograd::engine::"); }

// What torch.compile's own calls are named.
bool is_compiled(const char* name) {
  return starts_with(name, "Torch-Compiled Region") || starts_with(name, "## Call CompiledFxGraph");
}

std::unique_ptr<at::ObserverContext> on_user_scope(const at::RecordFunction& call) {
  if (hook->in_child() || hook->runs_kernel()) return nullptr;
  if (starts_with(call.name(), "Optimizer.step#")) {
    hook->optimizer_step_starts(call.name());
    return std::make_unique<OptimizerStep>();
  }
  if (is_compiled(call.name())) hook->compiled_code_seen();
  return nullptr;
}

void on_user_scope_end(const at::RecordFunction&, at::ObserverContext* context) {
  if (context != nullptr && !hook->in_child()) hook->optimizer_step_ends();
}

std::unique_ptr<at::ObserverContext> on_operator(const at::RecordFunction& call) {
  if (hook->in_child()) {
    hook->child_runs(call.inputs());
    return nullptr;
  }
  if (hook->runs_kernel()) {
    hook->kernel_calls_another();
    return nullptr;
  }
  if (is_autograds_own(call.name())) return nullptr;
  if (const Operator* op = hook->operators().find(call)) {
    if (!hook->kernel_starts(*op, call.inputs())) return nullptr;
    auto outermost = std::make_unique<OutermostOperator>();
    // To hide what it calls costs as much as being told of two calls.
    outermost->hides_inner = std::atomic_ref(op->calls_others).load(std::memory_order_relaxed) && are_alone();
    if (outermost->hides_inner) at::enableRecordFunction(false);
    return outermost;
  }
  if (is_compiled(call.name())) hook->compiled_code_seen();
  return nullptr;
}

void on_operator_end(const at::RecordFunction&, at::ObserverContext* context) {
  if (context == nullptr) return;
  if (static_cast<OutermostOperator*>(context)->hides_inner) at::enableRecordFunction(true);
  if (!hook->in_child()) hook->kernel_ends();
}

Result<std::unique_ptr<TensorMemory>> memory_for(Session& session) {
  if (session.config.mode == SessionMode::trace) return std::make_unique<PlainMemory>();
  if (session.config.mode == SessionMode::dry_run) return DryMemory::reserve();
  if (session.config.gpu < 0) return start_paged_memory(session);
#ifdef SPILLWAY_HAS_CUDA
  return start_gpu_memory(session);
#else
  return fail(Errc::unavailable,
              "this spillway was built with a PyTorch without CUDA and cannot limit a GPU: build it with one "
              "that has it (-DSPILLWAY_PYTHON=...), or limit the CPU (--device cpu)");
#endif
}

// It links PyTorch's CUDA, which not every PyTorch has.
Result<> install_cuda_allocator(const Session& session, DeviceTensors* tensors) {
  const char* path = session.config.torch_cuda_library.data();
  void* library = *path != '\0' ? ::dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  const auto install = library != nullptr
                           ? reinterpret_cast<InstallCudaAllocator>(::dlsym(library, kInstallCudaAllocatorSymbol))
                           : nullptr;
  if (install == nullptr) {
    const char* reason = *path != '\0' ? ::dlerror() : "it is not there";
    return fail(Errc::unavailable,
                std::string("cannot load libspillway_torch_cuda.so, PyTorch's allocator for a GPU: ") +
                    (reason != nullptr ? reason : "unknown") +
                    ": build spillway again for this Python (-DSPILLWAY_PYTHON=...)");
  }
  install(tensors);
  return {};
}

void watch_operators() {
  at::addGlobalCallback(
      at::RecordFunctionCallback(on_user_scope, on_user_scope_end).scopes({at::RecordScope::USER_SCOPE}));
  const at::CallbackHandle operators = at::addGlobalCallback(
      at::RecordFunctionCallback(on_operator, on_operator_end).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  hook->operators_are_watched_by(
      [operators](bool on) { on ? at::reenableCallback(operators) : at::disableCallback(operators); });
}

}  // namespace
}  // namespace spillway

// Called once, by the preloaded library, in the process that owns the budget, when the first tensor on such a device is
// about to be made. False: the session has the reason.
extern "C" __attribute__((visibility("default"))) bool spillway_torch_start(spillway::Session* session, int device_type,
                                                                            spillway::TorchPart* part) noexcept {
  using namespace spillway;
  for (auto& slot : session->state.disk_waits) slot = 0;  // An earlier program of this process waits for nothing.
  auto memory = memory_for(*session);
  if (!memory) {
    session->state.error.set(memory.error().message);
    return false;
  }
  part->managed = {(*memory)->range().data(), (*memory)->range().size()};
  const bool is_gpu = session->config.gpu >= 0;
  const c10::Device device(static_cast<c10::DeviceType>(device_type),
                           static_cast<c10::DeviceIndex>(is_gpu ? session->config.gpu : -1));
  hook = new Hook(*session, device, *std::move(memory));
  constexpr std::uint8_t kAboveAll = 255;
  ::pthread_atfork(nullptr, nullptr, [] { hook->enter_child(); });  // before another thread can fork with tensors
  if (is_gpu) {
    auto* tensors = new GpuTensors(device.index(), session->config.device_budget_bytes);
    if (device.is_cuda())
      if (const auto installed = install_cuda_allocator(*session, tensors); !installed) {
        session->state.error.set(installed.error().message);
        return false;
      }
    part->device_tensors = static_cast<DeviceTensors*>(tensors);
  } else if (device.is_meta()) {
    c10::SetAllocator(c10::DeviceType::Meta, new MetaAllocator, kAboveAll);
  } else {
    auto* allocator = new TensorAllocator;
    c10::SetCPUAllocator(allocator, kAboveAll);
    part->cpu_allocator = static_cast<c10::Allocator*>(allocator);
  }
  watch_operators();
  std::atexit([] { hook->finish(); });
  return true;
}
