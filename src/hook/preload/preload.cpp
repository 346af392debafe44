// Preloaded into every process that the script starts, so it must cost a shell next to nothing: no C++ library, and
// nothing done before PyTorch asks for its allocator.
//
// Note [Catching PyTorch]
// It exports two functions of PyTorch's libc10.so. libtorch_cpu.so calls the first at the first tensor's allocation:
// all of PyTorch is loaded and initialised by then, and libspillway_torch.so can be loaded, which links it. That
// replaces the allocator itself and every later call goes there; the second function stays ours, since PyTorch's own
// would return its built-in allocator whatever has been set. Interposing dlopen instead would break RUNPATH, which
// dlopen takes from its caller.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
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
using StartTorchPart = void* (*)(Session*, ManagedRange*);

std::atomic<pid_t> deciding_process{0};
std::atomic<pthread_t> decider{};
std::atomic<bool> decided{false};
std::atomic<Session*> opened{nullptr};
[[gnu::tls_model("initial-exec")]] thread_local bool has_waited = false;
std::atomic<void*> our_allocator{nullptr};                                   // null: this process is not managed
std::atomic<GetAllocator> get_cpu_allocator{}, get_default_cpu_allocator{};  // PyTorch's, once known

// The script must not run unmanaged without anybody noticing, so this ends it.
[[noreturn]] void refuse(Session* session, std::string_view reason) noexcept {
  if (session == nullptr || !session->state.error.set(reason)) write_line(reason);
  ::_exit(1);
}

GetAllocator original(std::atomic<GetAllocator>& known, const char* symbol) noexcept {
  if (const GetAllocator function = known.load(std::memory_order_acquire)) return function;
  // PyTorch's libraries are loaded RTLD_LOCAL: RTLD_NEXT would not find them.
  void* library = ::dlopen("libc10.so", RTLD_NOLOAD | RTLD_LAZY);
  void* function = library != nullptr ? ::dlsym(library, symbol) : nullptr;
  if (function != nullptr) {
    known.store(reinterpret_cast<GetAllocator>(function), std::memory_order_release);
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

// Null: this process is not managed.
Session* claimed_session() noexcept {
  const char* name = std::getenv(kSessionVariable);
  if (name == nullptr || *name == '\0') return nullptr;
  errno = 0;
  Session* session = open_session();
  opened.store(session);
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
  if (claim_ownership(*session)) return session;
  register_unmanaged(*session);
  return nullptr;
}

void start_torch_part(Session* session, GetAllocator function_of_pytorch) noexcept {
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
  ManagedRange managed;
  void* allocator = start(session, &managed);
  if (allocator == nullptr) ::_exit(1);  // It has left the reason in the session.
  refuse_calls_on(managed, *session);
  our_allocator.store(allocator);
}

// True for one thread, of the process that asks first.
bool is_decider(pid_t here) noexcept {
  pid_t nobody = 0;
  return deciding_process.compare_exchange_strong(nobody, here);
}

void decide() noexcept {
  decider.store(::pthread_self());
  Session* session = claimed_session();
  // What the other threads that ask meanwhile go on with; they should find it without the loader.
  const GetAllocator function_of_pytorch = original(get_cpu_allocator, kGetCpuAllocator);
  original(get_default_cpu_allocator, kGetDefaultCpuAllocator);
  if (session != nullptr) start_torch_part(session, function_of_pytorch);
  decided.store(true, std::memory_order_release);
}

// Decides once a process. A call that comes from within the decision, one of a child that was forked within it (nobody
// decides there), and one that waits too long for it (its thread could hold the loader's lock that the decision needs),
// go on with PyTorch's own allocator.
void ensure_decided() noexcept {
  if (decided.load(std::memory_order_acquire)) return;
  const pid_t here = ::getpid();
  if (is_decider(here)) return decide();
  if (has_waited || deciding_process.load() != here || ::pthread_equal(decider.load(), ::pthread_self())) return;
  if (wait_for(5, [] { return decided.load(std::memory_order_acquire); })) return;
  has_waited = true;
  if (Session* session = opened.load())
    add_notice(*session, "a thread could not wait for spillway to start: what it allocated before is not managed");
}

void* call(std::atomic<GetAllocator>& known, const char* symbol) noexcept {
  ensure_decided();
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
