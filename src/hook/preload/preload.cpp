// Preloaded into every process that the script starts, so it must cost a shell next to nothing: no C++ library, and
// nothing done before PyTorch asks for its allocator.
//
// Note [Catching PyTorch]
// It exports three functions of PyTorch's libc10.so, and one of its libc10_cuda.so that PyTorch calls when CUDA starts.
// PyTorch asks the third one for the allocator of other devices: of `meta`, for a dry run.
// Of tensors on the CPU: libtorch_cpu.so calls the first at the first tensor's allocation:
// all of PyTorch is loaded and initialised by then, and libspillway_torch.so can be loaded, which links it. That
// replaces the allocator itself and every later call goes there; the second function stays ours, since PyTorch's own
// would return its built-in allocator whatever has been set. Interposing dlopen instead would break RUNPATH, which
// dlopen takes from its caller.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "hook/preload/bounded_wait.h"
#include "hook/preload/pytorch_version.h"
#include "hook/preload/refused_calls.h"
#include "hook/preload/text.h"
#include "session/hook_side.h"

#ifndef SPILLWAY_TORCH_RELEASE
#error "the build must say for which PyTorch it is"
#endif

namespace spillway {
namespace {

using GetAllocator = void* (*)();  // c10::Allocator* (); its type is PyTorch's
constexpr const char* kGetCpuAllocator = "_ZN3c1015GetCPUAllocatorEv";
constexpr const char* kGetDefaultCpuAllocator = "_ZN3c1022GetDefaultCPUAllocatorEv";
using GetAllocatorOf = void* (*)(const signed char*);  // c10::Allocator* (const c10::DeviceType&)
constexpr const char* kGetAllocatorOf = "_ZN3c1012GetAllocatorERKNS_10DeviceTypeE";
using StartTorchPart = bool (*)(Session*, int device_type, TorchPart*);
using CountDevices = signed char (*)();  // c10::DeviceIndex ()
constexpr const char* kCountDevices = "_ZN3c104cuda28device_count_ensure_non_zeroEv";
constexpr int kCpu = 0, kCuda = 1, kMeta = 14;  // c10::DeviceType

std::atomic<Session*> opened{nullptr};
std::atomic<void*> our_allocator{nullptr};                                   // null: CPU tensors are not managed here
std::atomic<void*> our_tensors{nullptr};                                     // DeviceTensors*; as above, of a GPU
std::atomic<GetAllocator> get_cpu_allocator{}, get_default_cpu_allocator{};  // PyTorch's, once known
std::atomic<GetAllocatorOf> get_allocator{};

// The script must not run unmanaged without anybody noticing, so this ends it.
[[noreturn]] void refuse(Session* session, std::string_view reason) noexcept {
  if (session == nullptr || !session->state.error.set(reason)) write_line(reason);
  ::_exit(1);
}

template <class Function>
Function original(std::atomic<Function>& known, const char* symbol) noexcept {
  if (const Function function = known.load(std::memory_order_acquire)) return function;
  // PyTorch's libraries are loaded RTLD_LOCAL: RTLD_NEXT would not find them.
  void* library = ::dlopen("libc10.so", RTLD_NOLOAD | RTLD_LAZY);
  void* function = library != nullptr ? ::dlsym(library, symbol) : nullptr;
  if (function != nullptr) {
    known.store(reinterpret_cast<Function>(function), std::memory_order_release);
    return known.load(std::memory_order_relaxed);
  }
  write_line("bug: somebody called PyTorch's allocator functions, but no libc10.so is loaded");
  ::_exit(1);
}

void check_version(Session* session, GetAllocator function_of_pytorch) noexcept {
  Dl_info where{};
  if (::dladdr(reinterpret_cast<void*>(function_of_pytorch), &where) == 0 || where.dli_fname == nullptr) return;
  const PyTorchVersion version(where.dli_fname);
  if (version.release() == SPILLWAY_TORCH_RELEASE) return;
  refuse(session,
         (Sentence() << "this spillway was built for PyTorch " SPILLWAY_TORCH_RELEASE ", but the script loads PyTorch "
                     << (version.full().empty() ? "of an unknown version" : version.full()) << " (" << where.dli_fname
                     << "): run the script with the Python that spillway was built for, or build spillway for this "
                        "one: cmake -B build -DSPILLWAY_PYTHON=/path/to/its/python3 && cmake --build build")
             .text());
}

bool is_gpu(int device_type) noexcept { return device_type != kCpu && device_type != kMeta; }

bool is_about(const SessionConfig& config, int device_type) noexcept {
  if (config.mode == SessionMode::dry_run) return device_type == kMeta;
  return config.gpu >= 0 ? is_gpu(device_type) : device_type == kCpu;
}

// Once a process, whoever asks first. Of two threads that do so at a time, one gives up what it has opened.
Session* the_session() noexcept {
  if (Session* known = opened.load()) return known;
  Session* mine = open_session();
  Session* known = nullptr;
  if (mine == nullptr || opened.compare_exchange_strong(known, mine)) return mine;
  ::munmap(mine, sizeof(Session));
  return known;
}

// Null: such tensors are not managed in this process.
Session* claimed_session(int device_type) noexcept {
  const char* name = std::getenv(kSessionVariable);
  if (name == nullptr || *name == '\0') return nullptr;
  errno = 0;
  Session* session = the_session();
  // Only a dry run wants such tensors, and they take no memory: nothing is lost if they are not seen.
  if (session == nullptr && device_type == kMeta) return nullptr;
  if (session == nullptr && errno == EACCES)
    refuse(nullptr,
           (Sentence() << "cannot open the session " << name << " that " << kSessionVariable
                       << " names: it belongs to another user; start `spillway run` as the user whom the script "
                          "runs as (within su, sudo or setpriv, not around it)")
               .text());
  if (session == nullptr)
    refuse(nullptr,
           (Sentence()
            << "cannot open the session " << name << " that " << kSessionVariable
            << " names: its supervisor has ended or is of another version; start the script with `spillway run` again")
               .text());
  if (!is_about(session->config, device_type)) return nullptr;
  if (claim_ownership(*session)) return session;
  register_unmanaged(*session);
  return nullptr;
}

void start_torch_part(Session* session, int device_type, GetAllocator function_of_pytorch) noexcept {
  check_version(session, function_of_pytorch);
  void* library = ::dlopen(session->config.torch_library.data(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    refuse(session, (Sentence() << "cannot load the part of spillway that meets PyTorch: "
                                << (reason != nullptr ? reason : "unknown")
                                << ": build spillway again for this Python (-DSPILLWAY_PYTHON=...)")
                        .text());
  }
  const auto start = reinterpret_cast<StartTorchPart>(::dlsym(library, "spillway_torch_start"));
  if (start == nullptr)
    refuse(session,
           (Sentence() << session->config.torch_library.data() << " is not spillway's: install spillway again").text());
  TorchPart part;
  if (!start(session, device_type, &part)) ::_exit(1);  // It has left the reason in the session.
  refuse_calls_on(part.managed, *session);
  our_allocator.store(part.cpu_allocator);
  our_tensors.store(part.device_tensors);
}

// Whether tensors of one kind of device are managed in this process: that is decided when PyTorch is about to make the
// first.
class Decision {
 public:
  // Once a process. A call that comes from within the decision, one of a child that was forked within it (nobody
  // decides there), and one that waits too long for it (its thread could hold the loader's lock that the decision
  // needs), go on with PyTorch's own allocator.
  void ensure(int device_type) noexcept {
    if (decided_.load(std::memory_order_acquire)) return;
    const pid_t here = ::getpid();
    pid_t nobody = 0;
    if (process_.compare_exchange_strong(nobody, here)) return decide(device_type);
    if (has_waited || process_.load() != here || ::pthread_equal(decider_.load(), ::pthread_self())) return;
    if (wait_for(is_gpu(device_type) ? 60 : 5, [&] { return decided_.load(std::memory_order_acquire); })) return;
    has_waited = true;
    if (Session* session = opened.load())
      add_notice(*session, "a thread could not wait for spillway to start: what it allocated before is not managed");
  }

 private:
  void decide(int device_type) noexcept {
    decider_.store(::pthread_self());
    Session* session = claimed_session(device_type);
    // What the other threads that ask meanwhile go on with; they should find it without the loader.
    const GetAllocator function_of_pytorch = original(get_cpu_allocator, kGetCpuAllocator);
    original(get_default_cpu_allocator, kGetDefaultCpuAllocator);
    if (session != nullptr) start_torch_part(session, device_type, function_of_pytorch);
    decided_.store(true, std::memory_order_release);
  }

  [[gnu::tls_model("initial-exec")]] static thread_local bool has_waited;
  std::atomic<pid_t> process_{0};
  std::atomic<pthread_t> decider_{};
  std::atomic<bool> decided_{false};
};
thread_local bool Decision::has_waited = false;

Decision of_cpu, of_gpu, of_meta;

void* call(std::atomic<GetAllocator>& known, const char* symbol) noexcept {
  of_cpu.ensure(kCpu);
  return original(known, symbol)();
}

}  // namespace
}  // namespace spillway

#define SPILLWAY_EXPORT extern "C" __attribute__((visibility("default")))

SPILLWAY_EXPORT void* _ZN3c1015GetCPUAllocatorEv() noexcept {  // c10::GetCPUAllocator()
  return spillway::call(spillway::get_cpu_allocator, spillway::kGetCpuAllocator);
}

SPILLWAY_EXPORT void* _ZN3c1022GetDefaultCPUAllocatorEv() noexcept {  // c10::GetDefaultCPUAllocator()
  if (void* ours = spillway::our_allocator.load(std::memory_order_acquire)) return ours;
  void* theirs = spillway::call(spillway::get_default_cpu_allocator, spillway::kGetDefaultCpuAllocator);
  void* ours = spillway::our_allocator.load(std::memory_order_acquire);
  return ours != nullptr ? ours : theirs;
}

// c10::GetAllocator(const c10::DeviceType&), which throws where there is none.
SPILLWAY_EXPORT void* _ZN3c1012GetAllocatorERKNS_10DeviceTypeE(const signed char* device_type) {
  if (*device_type == spillway::kMeta) spillway::of_meta.ensure(spillway::kMeta);
  return spillway::original(spillway::get_allocator, spillway::kGetAllocatorOf)(device_type);
}

// For allocators of a GPU: see hook/torch/device_tensors.h.
SPILLWAY_EXPORT void* spillway_device_tensors(int device_type) noexcept {
  spillway::of_gpu.ensure(device_type);
  return spillway::our_tensors.load(std::memory_order_acquire);
}

// c10::cuda::device_count_ensure_non_zero(). PyTorch calls it once, before CUDA starts; it throws where there is no
// GPU.
SPILLWAY_EXPORT signed char _ZN3c104cuda28device_count_ensure_non_zeroEv() {
  void* library = ::dlopen("libc10_cuda.so", RTLD_NOLOAD | RTLD_LAZY);
  void* function = library != nullptr ? ::dlsym(library, spillway::kCountDevices) : nullptr;
  if (function == nullptr) {
    spillway::write_line("bug: somebody starts PyTorch's CUDA, but no libc10_cuda.so is loaded");
    ::_exit(1);
  }
  spillway_device_tensors(spillway::kCuda);
  return reinterpret_cast<spillway::CountDevices>(function)();
}
