#include "machines/cpu/children/fork_guard.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "base/mutex.h"
#include "machines/cpu/children/forked_children.h"

namespace spillway {
namespace {

// fork()'s handlers take no argument, so the guards in force are global. The mutex is held over each fork; signal
// handlers read without it.
constexpr std::size_t kMostGuards = 16;
std::array<std::atomic<ForkGuard*>, kMostGuards> guards{};
Mutex forking;
struct sigaction inherited{};  // handlers read it, so it is written under the mutex

}  // namespace

struct ForkGuards {
  static void enter(ForkGuard* guard) {
    static std::once_flag once;
    std::call_once(once, [] { ::pthread_atfork(before_fork, in_parent, in_child); });
    const MutexLock lock(forking);
    for (auto& place : guards) {
      ForkGuard* none = nullptr;
      if (place.compare_exchange_strong(none, guard)) return;
    }
    CHECK(false && "more pagers in one process than anybody needs");
  }
  static void leave(ForkGuard* guard) {
    const MutexLock lock(forking);
    for (auto& place : guards) {
      ForkGuard* expected = guard;
      if (place.compare_exchange_strong(expected, nullptr)) return;
    }
  }

  static void before_fork() SPILLWAY_ACQUIRE(forking) {
    forking.lock();
    for (const auto& place : guards)
      if (ForkGuard* guard = place.load(); guard != nullptr && !guard->in_child())
        guard->server_ = guard->port_.before();
  }
  static void in_parent() SPILLWAY_RELEASE(forking) {
    for (const auto& place : guards)
      if (ForkGuard* guard = place.load(); guard != nullptr && !guard->in_child()) {
        guard->server_.reset();
        guard->port_.after();
      }
    forking.unlock();
  }
  static void in_child() SPILLWAY_RELEASE(forking) {
    bool some_unserved = false;
    for (const auto& place : guards)
      if (ForkGuard* guard = place.load(); guard != nullptr) {
        guard->become_child();
        some_unserved |= !guard->is_served();
      }
    forking.unlock();
    if (some_unserved) explain_faults();
  }

  static void explain_faults() {
    struct sigaction action{};
    action.sa_sigaction = explain;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    struct sigaction before{};
    // A child's child has the handler already: that is not one to pass signals on to.
    if (::sigaction(SIGSEGV, &action, &before) == 0 &&
        !((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction == explain))
      inherited = before;
  }

  static void explain(int signal, siginfo_t* info, void* context) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    for (const auto& place : guards) {
      const ForkGuard* guard = place.load();
      if (guard == nullptr || address - reinterpret_cast<std::uintptr_t>(guard->begin_) >= guard->bytes_) continue;
      constexpr std::string_view kText =
          "spillway: a forked process has touched a tensor of its parent, which could not be served to it (it has "
          "closed descriptors that are not its own, may not serve page faults, no descriptors were left, or the "
          "fork took longer than 10 s); start the process with the 'spawn' method "
          "(multiprocessing_context='spawn'), or put the tensor into shared memory first (tensor.share_memory_())\n";
      tell(kText);
      ::signal(SIGSEGV, SIG_DFL);
      return;  // The instruction runs again and ends the process.
    }
    if ((inherited.sa_flags & SA_SIGINFO) != 0) return inherited.sa_sigaction(signal, info, context);
    if (inherited.sa_handler != SIG_DFL && inherited.sa_handler != SIG_IGN) return inherited.sa_handler(signal);
    ::signal(SIGSEGV, SIG_DFL);
  }
};

ForkGuard::ForkGuard(std::byte* begin, std::size_t bytes, std::vector<int> descriptors, ForkPort port)
    : begin_(begin), bytes_(bytes), descriptors_(std::move(descriptors)), port_(std::move(port)) {
  ForkGuards::enter(this);
}

ForkGuard::~ForkGuard() { ForkGuards::leave(this); }

void ForkGuard::become_child() {
  set_last_words(nullptr);  // They are the parent's, and so is the thread that would write them.
  // A child's child has a copy of the range, of what its parent had touched.
  constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (!in_child_.exchange(true)) {
    if (server_ && !port_.in_child()) server_.reset();
    has_range_ = ::mmap(begin_, bytes_, PROT_READ | PROT_WRITE, kPrivate | MAP_FIXED_NOREPLACE, -1, 0) == begin_;
    for (const int descriptor : descriptors_) ::close(descriptor);
  }
  if (!has_range_) return faults_.reset();  // A fork handler before this one has mapped something there, which stays.
  if (is_served_anew()) return;
  // Nothing but a hole. Left open, the child's own mappings would end up in it and pass for managed memory.
  faults_.reset();
  CHECK(::mmap(begin_, bytes_, PROT_NONE, kPrivate | MAP_FIXED, -1, 0) == begin_);
}

bool ForkGuard::is_served_anew() {
  if (!server_) return false;
  auto faults = ask_to_be_served(server_->get(), begin_, bytes_);
  if (!faults) return false;
  faults_.emplace(std::move(*faults));
  return true;
}

}  // namespace spillway
