#include "hook/pager/fork_guard.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/files.h"

namespace spillway {
namespace {

// fork()'s handlers take no argument, so the guards in force are global; children read them without a lock.
constexpr std::size_t kMostGuards = 16;
std::array<std::atomic<ForkGuard*>, kMostGuards> guards{};
struct sigaction inherited{};

}  // namespace

struct ForkGuards {
  static void enter(ForkGuard* guard) {
    static std::once_flag once;
    std::call_once(once, [] { ::pthread_atfork(nullptr, nullptr, in_child); });
    for (auto& place : guards) {
      ForkGuard* none = nullptr;
      if (place.compare_exchange_strong(none, guard)) return;
    }
    CHECK(false && "more pagers in one process than anybody needs");
  }
  static void leave(ForkGuard* guard) {
    for (auto& place : guards) {
      ForkGuard* expected = guard;
      if (place.compare_exchange_strong(expected, nullptr)) return;
    }
  }

  static void in_child() {
    bool any = false;
    for (const auto& place : guards) {
      ForkGuard* guard = place.load();
      if (guard == nullptr || guard->in_child_.exchange(true)) continue;
      // The range is a hole here. Left open, the child's own mappings would end up in it and pass for managed memory.
      CHECK(::mmap(const_cast<std::byte*>(guard->begin_), guard->bytes_, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == guard->begin_);
      for (const int descriptor : guard->descriptors_) ::close(descriptor);
      any = true;
    }
    if (!any) return;
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
          "spillway: a forked process has touched a tensor of its parent, whose memory is limited and not shared with "
          "children; start the process with the 'spawn' method (multiprocessing_context='spawn'), or put the tensor "
          "into shared memory first (tensor.share_memory_())\n";
      tell(kText);
      ::signal(SIGSEGV, SIG_DFL);
      return;  // The instruction runs again and ends the process.
    }
    if ((inherited.sa_flags & SA_SIGINFO) != 0) return inherited.sa_sigaction(signal, info, context);
    if (inherited.sa_handler != SIG_DFL && inherited.sa_handler != SIG_IGN) return inherited.sa_handler(signal);
    ::signal(SIGSEGV, SIG_DFL);
  }
};

ForkGuard::ForkGuard(const std::byte* begin, std::size_t bytes, std::vector<int> descriptors)
    : begin_(begin), bytes_(bytes), descriptors_(std::move(descriptors)) {
  ForkGuards::enter(this);
}

ForkGuard::~ForkGuard() { ForkGuards::leave(this); }

}  // namespace spillway
