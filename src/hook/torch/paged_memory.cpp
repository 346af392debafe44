#include "hook/torch/paged_memory.h"

#include <unistd.h>

#include "machines/cpu/watched_io.h"
#include "policies/policies.h"
#include "runtime/pager.h"
#include "runtime/planning.h"
#include "session/hook_side.h"
#include "session/session_pager.h"

namespace spillway {
namespace {

class PagedMemory final : public TensorMemory {
 public:
  PagedMemory(std::unique_ptr<Pager> pager, std::unique_ptr<Planning> planning)
      : pager_(std::move(pager)), planning_(std::move(planning)) {}

  Result<void*> allocate(const Newborn& tensor) override {
    return pager_->allocate(tensor.bytes, tensor.place, tensor.label);
  }
  void free(void* memory) override { pager_->free(memory); }
  bool contains(const void* memory) const override { return pager_->contains(memory); }
  std::span<std::byte> range() const override { return {pager_->range().begin(), pager_->range().bytes()}; }
  bool is_short() const override { return pager_->is_short(); }
  bool is_served() const override { return pager_->is_served(); }
  void kernel_ready(const NextKernel& kernel, std::span<const ByteExtent> extents) override {
    pager_->kernel_ready(pager_->this_stream(), kernel, extents);
  }
  MovedBytes moved(const void* memory, Bytes bytes) const override { return pager_->moved(memory, bytes); }
  void script_ends() override { pager_->script_ends(); }
  Planning* planning() override { return planning_.get(); }
  void kernel_done() override { pager_->kernel_done(pager_->this_stream()); }
  Nanos stalled(Nanos now) const override { return pager_->stall(now); }
  Paged paged() const override {
    const PagerStats stats = pager_->stats();
    return {.faults = stats.faults,
            .in = stats.moved(Tier::host, Tier::device) + stats.moved(Tier::ssd, Tier::device),
            .out = stats.moved(Tier::device, Tier::host) + stats.moved(Tier::device, Tier::ssd),
            .waited = stats.stall};
  }

 private:
  std::unique_ptr<Pager> pager_;
  std::unique_ptr<Planning> planning_;
};

// The supervisor reports from the session however this process ends, so it is always up to date. What an image of this
// process that has replaced itself (exec) left there counts as well.
class Counters {
 public:
  explicit Counters(SessionState& state) : state_(state) {
    before_.faults = state.faults;
    before_.first_touches = state.first_touches;
    before_.stall.value = state.stall_ns;
    before_.written.value = state.ssd_written_bytes;
    before_.dropped_clean.value = state.clean_drops_bytes;
    before_.unseen_writes = state.unseen_writes;
    for (const Tier from : kTiers)
      for (const Tier to : kTiers)
        if (from != to) before_.moved(from, to).value = state.moved(from, to);
  }
  void publish(const PagerStats& stats) {
    state_.faults.store(before_.faults + stats.faults, std::memory_order_relaxed);
    state_.first_touches.store(before_.first_touches + stats.first_touches, std::memory_order_relaxed);
    state_.stall_ns.store((before_.stall + stats.stall).value, std::memory_order_relaxed);
    state_.ssd_written_bytes.store((before_.written + stats.written).value, std::memory_order_relaxed);
    state_.clean_drops_bytes.store((before_.dropped_clean + stats.dropped_clean).value, std::memory_order_relaxed);
    state_.unseen_writes.store(before_.unseen_writes + stats.unseen_writes, std::memory_order_relaxed);
    for (const Tier from : kTiers)
      for (const Tier to : kTiers)
        if (from != to)
          state_.moved(from, to).store((before_.moved(from, to) + stats.moved(from, to)).value,
                                       std::memory_order_relaxed);
    state_.device_bytes.store(stats.held.device.value, std::memory_order_relaxed);
    state_.host_bytes.store(stats.held.host.value, std::memory_order_relaxed);
    state_.ssd_bytes.store(stats.held.ssd.value, std::memory_order_relaxed);
    raise_peak(state_.peak_device_bytes, stats.peak.device.value);
    raise_peak(state_.peak_host_bytes, stats.peak.host.value);
    raise_peak(state_.peak_ssd_bytes, stats.peak.ssd.value);
  }

 private:
  SessionState& state_;
  PagerStats before_{};
};

// The supervisor has read it already, so this fails only if somebody has changed it since.
std::optional<GivenPlan> given_plan(Session& session) {
  const std::string file = session.config.plan_path.data();
  if (file.empty()) return std::nullopt;
  auto given = load_given_plan(file);
  if (given) return *std::move(given);
  add_notice(session, "the run plans by itself: " + given.error().message);
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<TensorMemory>> start_paged_memory(Session& session) {
  const std::string policy = session.config.policy.data();
  PagerConfig config = pager_config(session.config);
  if (const auto known = policy_by_name(policy == kAuto ? kAutoWithoutPlan : policy)) {
    config.online = known->traits.online;
    config.keeps_copies = known->traits.keeps_copies;
  }
  config.on_progress = [counters = Counters(session.state)](const PagerStats& stats) mutable {
    counters.publish(stats);
  };
  config.around_io = [&session](std::unique_ptr<BlockIo> io) {
    return std::make_unique<WatchedIo>(std::move(io), session.state.disk_waits);
  };
  config.disk_waits = config.journal.waits = &session.state.disk_waits;
  config.journal.on_stop = [&session](std::string_view sentence) { add_notice(session, sentence); };
  config.iterations = [&session] { return session.state.iteration_count.load(std::memory_order_relaxed); };
  config.on_child_ended = [&session](std::string_view sentence) { add_notice(session, sentence); };
  // The supervisor prints it. Nothing else may run any more: threads wait for blocks that will never come.
  config.on_failure = [&session](std::string_view message) {
    session.state.error.set(message);
    ::_exit(1);
  };
  TRY(std::unique_ptr<Pager> pager, Pager::start(std::move(config)));
  session.state.eviction_path = pager->eviction_method();
  session.state.journalled = pager->has_journal() ? 1 : 0;
  if (pager->eviction_method() == EvictionMethod::copy)
    add_notice(session,
               "the copying path cannot see direct I/O: a script must not read files with O_DIRECT into tensors while "
               "memory is short (Linux 6.8 and newer can move pages instead)");
  std::unique_ptr<Planning> planning;
  if (plans(policy) && session.config.rates.copy != 0)
    planning = std::make_unique<Planning>(*pager, measured_machine(session.config), policy, given_plan(session));
  return std::make_unique<PagedMemory>(std::move(pager), std::move(planning));
}

}  // namespace spillway
