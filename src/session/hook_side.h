#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "session/session.h"

// What the hook does with the session. All of it is inline, needs libc only and allocates nothing; everything but
// open_session() may be called from any thread at any time, the fault-serving thread and fork's child included.
namespace spillway {

// What the part that meets PyTorch tells the preloaded one.
struct ManagedRange {  // the addresses of tensors that page faults bring; none where nothing is paged
  void* begin = nullptr;
  std::size_t bytes = 0;
};
struct TorchPart {
  void* cpu_allocator = nullptr;   // c10::Allocator*; null: tensors on the CPU are none of its business
  void* device_tensors = nullptr;  // DeviceTensors*, of a GPU; null: those are not
  ManagedRange managed;
};

// Maps the session that the environment names, or null: this process was not started by `spillway run` or `trace`, or
// the supervisor is gone, or it is of another version. Never unmapped; call it once a process.
inline Session* open_session() noexcept {
  const char* path = std::getenv(kSessionVariable);
  if (path == nullptr || *path == '\0') return nullptr;
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  struct stat status{};
  void* memory = MAP_FAILED;
  if (::fstat(fd, &status) == 0 && status.st_size == static_cast<off_t>(sizeof(Session)))
    memory = ::mmap(nullptr, sizeof(Session), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) return nullptr;
  auto* session = static_cast<Session*>(memory);
  if (session->magic == kSessionMagic && session->version == kSessionVersion && session->size == sizeof(Session))
    return session;
  ::munmap(memory, sizeof(Session));
  return nullptr;
}

inline std::uint64_t monotonic_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

// True for the first process that asks, and again for the same one (after an exec, say): it owns the budget.
inline bool claim_ownership(Session& session) noexcept {
  std::int64_t owner = 0;
  if (session.state.owner_pid.compare_exchange_strong(owner, ::getpid())) {
    session.state.owner_since_ns.store(monotonic_ns());
    return true;
  }
  return owner == ::getpid();
}

// Puts this process on the list of those that use PyTorch without limits. The name is its command line.
inline void register_unmanaged(Session& session) noexcept {
  const std::uint64_t place = session.state.unmanaged_count.fetch_add(1);
  if (place >= kMaxUnmanaged) return;
  UnmanagedProcess& entry = session.state.unmanaged[place];
  entry.pid.store(::getpid());
  char name[256];
  ssize_t size = 0;
  const int fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    size = ::read(fd, name, sizeof name);
    ::close(fd);
  }
  if (size < 0) size = 0;
  while (size > 0 && name[size - 1] == '\0') --size;
  for (ssize_t i = 0; i < size; ++i)
    if (name[i] == '\0') name[i] = ' ';
  entry.name.set({name, static_cast<std::size_t>(size)});
}

inline void raise_peak(std::atomic<std::uint64_t>& peak, std::uint64_t value) noexcept {
  std::uint64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

// With the plans that were followed in them.
inline void forget_iterations(Session& session) noexcept {
  session.state.iterations.clear();
  session.state.plans.clear();
}

// A plan is followed from the next iteration on.
inline void add_plan(Session& session, PlanFigures plan) noexcept {
  plan.adopted_at_iteration = session.state.iterations.count() + 1;
  session.state.plans.add(plan);
}

// The one taken up last is not followed from the next iteration on.
inline void end_plan(Session& session, PlanEnd why) noexcept {
  auto [count, plan] = session.state.plans.last();
  if (count == 0) return;
  plan.end = why;
  plan.dropped_at_iteration = session.state.iterations.count() + 1;
  session.state.plans.replace_last(plan);
}

// One sentence that the supervisor prints at the end: "torch.compile is in use: ...". Said again it is not printed
// again.
inline void add_notice(Session& session, std::string_view sentence) noexcept {
  for (const auto& said : session.state.notices)
    if (said.is_set() && said.get() == said.cut(sentence)) return;
  const std::uint64_t place = session.state.notice_count.fetch_add(1);
  if (place < kMaxNotices) session.state.notices[place].set(sentence);
}

}  // namespace spillway
