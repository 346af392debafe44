#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "session/session.h"

// What the hook does with the session. All of it is inline, needs libc only and allocates nothing; everything but
// open_session() may be called from any thread at any time, the fault-serving thread and fork's child included.
namespace spillway {

// The addresses of tensors, as the part that meets PyTorch tells the preloaded one; none where nothing is paged.
struct ManagedRange {
  void* begin = nullptr;
  std::size_t bytes = 0;
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

struct IterationFigures {
  std::uint64_t duration_ns = 0, steps = 0, faults = 0;
  std::uint64_t moved_in_bytes = 0, moved_out_bytes = 0;
  std::uint64_t waited_ns = 0;                     // in which some thread waited for memory
  std::uint64_t kernels = 0, planned_kernels = 0;  // that used managed memory; of these, a plan's
  bool planned = false;                            // it followed a plan
};
// One iteration of the script has ended. Called by one thread only.
inline void add_iteration(Session& session, const IterationFigures& figures) noexcept {
  const std::uint64_t place = session.state.iteration_count.load(std::memory_order_relaxed);
  if (place < kMaxIterations) {
    EndedIteration& record = session.state.iterations[place];
    record.duration_ns.store(figures.duration_ns, std::memory_order_relaxed);
    record.steps.store(figures.steps, std::memory_order_relaxed);
    record.faults.store(figures.faults, std::memory_order_relaxed);
    record.moved_in_bytes.store(figures.moved_in_bytes, std::memory_order_relaxed);
    record.moved_out_bytes.store(figures.moved_out_bytes, std::memory_order_relaxed);
    record.waited_ns.store(figures.waited_ns, std::memory_order_relaxed);
    record.kernels.store(figures.kernels, std::memory_order_relaxed);
    record.planned_kernels.store(figures.planned_kernels, std::memory_order_relaxed);
    record.planned.store(figures.planned, std::memory_order_relaxed);
  }
  session.state.iteration_count.store(place + 1, std::memory_order_release);
}

// The last one goes on after all.
inline void replace_iteration(Session& session, const IterationFigures& figures) noexcept {
  session.state.iteration_count.fetch_sub(1, std::memory_order_relaxed);
  add_iteration(session, figures);
}

// With the plans that were followed in them.
inline void forget_iterations(Session& session) noexcept {
  session.state.iteration_count.store(0);
  session.state.plan_count.store(0);
}

struct PlanFigures {
  std::uint64_t iteration = 0;  // the recorder's number
  std::uint64_t predicted_ns = 0, predicted_wait_ns = 0, link_bound_ns = 0, least_wait_ns = 0, planning_ns = 0;
  std::uint64_t least_in_bytes = 0, least_out_bytes = 0;
  std::uint64_t predicted_in_bytes = 0, predicted_out_bytes = 0;
  std::uint64_t optimizer_steps = 0;  // in an iteration
  bool given = false;
};
// A plan is followed from the next iteration on. Of very many the last one takes the place of the one before.
inline void add_plan(Session& session, std::string_view policy, const PlanFigures& figures) noexcept {
  const std::uint64_t count = session.state.plan_count.load(std::memory_order_relaxed);
  PlanRecord& record = session.state.plans[std::min(count, kMaxPlans - 1)];
  record.policy = {};
  policy.copy(record.policy.data(), record.policy.size() - 1);
  const auto set = [](auto& field, auto value) { field.store(value, std::memory_order_relaxed); };
  set(record.iteration, figures.iteration);
  set(record.predicted_ns, figures.predicted_ns);
  set(record.predicted_wait_ns, figures.predicted_wait_ns);
  set(record.predicted_in_bytes, figures.predicted_in_bytes);
  set(record.predicted_out_bytes, figures.predicted_out_bytes);
  set(record.link_bound_ns, figures.link_bound_ns);
  set(record.least_wait_ns, figures.least_wait_ns);
  set(record.least_in_bytes, figures.least_in_bytes);
  set(record.least_out_bytes, figures.least_out_bytes);
  set(record.planning_ns, figures.planning_ns);
  set(record.optimizer_steps, figures.optimizer_steps);
  set(record.given, figures.given);
  set(record.adopted_at_iteration, session.state.iteration_count.load(std::memory_order_relaxed) + 1);
  set(record.given_up_at_iteration, 0);
  set(record.end, PlanEnd::none);
  session.state.plan_count.store(count + 1, std::memory_order_release);
}

// The one taken up last is not followed from the next iteration on.
inline void end_plan(Session& session, PlanEnd why) noexcept {
  const std::uint64_t count = session.state.plan_count.load(std::memory_order_relaxed);
  if (count == 0) return;
  PlanRecord& record = session.state.plans[std::min(count, kMaxPlans) - 1];
  record.end.store(why, std::memory_order_relaxed);
  record.given_up_at_iteration.store(session.state.iteration_count.load(std::memory_order_relaxed) + 1,
                                     std::memory_order_relaxed);
}

inline void copy_text(std::span<char> field, std::string_view text) noexcept {
  const std::size_t size = std::min(text.size(), field.size() - 1);
  if (size > 0) std::memcpy(field.data(), text.data(), size);  // An empty text may be nowhere.
  field[size] = 0;
}

struct CostFigures {
  std::string_view name, maker;
  std::uint64_t bytes = 0, moved_bytes = 0, waited_for_bytes = 0;
};
// The tensors that cost most, the dearest first: instead of those told before. Called by one thread at a time.
inline void set_costs(Session& session, std::span<const CostFigures> costs) noexcept {
  const std::uint64_t version = session.state.costs_version.load(std::memory_order_relaxed) + 1;
  auto& records = session.state.costs[version % 2];
  for (std::size_t i = 0; i < kMostCosts; ++i) {
    const CostFigures figures = i < costs.size() ? costs[i] : CostFigures{};
    copy_text(records[i].name, figures.name);
    copy_text(records[i].maker, figures.maker);
    records[i].bytes = figures.bytes;
    records[i].moved_bytes = figures.moved_bytes;
    records[i].waited_for_bytes = figures.waited_for_bytes;
  }
  session.state.costs_version.store(version, std::memory_order_release);
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
