#include "hook/torch/paged_memory.h"

#include <unistd.h>

#include <atomic>
#include <vector>

#include "hook/pager/pager.h"
#include "hook/session/hook_side.h"

namespace spillway {
namespace {

class PagedMemory final : public TensorMemory {
 public:
  PagedMemory(Session& session, std::unique_ptr<Pager> pager) : state_(session.state), pager_(std::move(pager)) {
    state_.device_budget_bytes = pager_->stats().device_budget.value;
    state_.eviction_path = pager_->stats().eviction_path == "move" ? EvictionPath::move : EvictionPath::copy;
  }

  Result<void*> allocate(std::size_t bytes) override { return pager_->allocate(bytes); }
  void free(void* memory) override { pager_->free(memory); }
  bool contains(const void* memory) const override { return pager_->contains(memory); }
  void kernel_ready(std::span<const MemoryExtent> extents) override {
    thread_local std::vector<ByteExtent> list;
    list.clear();
    for (const MemoryExtent& extent : extents)
      list.push_back({.begin = extent.begin, .bytes = extent.bytes, .writes = extent.writes, .sparse = extent.sparse});
    pager_->kernel_ready(pager_->this_stream(), list);
  }
  void kernel_done() override {
    pager_->kernel_done(pager_->this_stream());
    publish_now_and_then();
  }
  Nanos waited_by_this_thread() override { return pager_->stall_of(pager_->this_stream()); }
  std::uint64_t faults() const override { return pager_->faults(); }

  void publish() override {
    const PagerStats stats = pager_->stats();
    state_.faults = stats.faults;
    state_.stall_ns = stats.stall_of_the_process.value;
    for (const Tier from : kTiers)
      for (const Tier to : kTiers)
        if (from != to) state_.moved(from, to) = stats.moved(from, to).value;
    raise_peak(state_.peak_device_bytes, stats.peak.device.value);
    raise_peak(state_.peak_host_bytes, stats.peak.host.value);
    raise_peak(state_.peak_ssd_bytes, stats.peak.ssd.value);
  }

 private:
  // The supervisor reports from the session even if this process is killed, so it must not lag far behind.
  void publish_now_and_then() {
    constexpr std::uint64_t kInterval = 20'000'000;  // ns
    const std::uint64_t now = monotonic_ns();
    std::uint64_t last = published_.load(std::memory_order_relaxed);
    if (now - last >= kInterval && published_.compare_exchange_strong(last, now)) publish();
  }

  SessionState& state_;
  std::unique_ptr<Pager> pager_;
  std::atomic<std::uint64_t> published_{0};
};

EvictionMethod method_of(EvictionPath path) {
  switch (path) {
    case EvictionPath::move:
      return EvictionMethod::move;
    case EvictionPath::copy:
      return EvictionMethod::copy;
    case EvictionPath::automatic:
      break;
  }
  return EvictionMethod::automatic;
}

}  // namespace

Result<std::unique_ptr<TensorMemory>> start_paged_memory(Session& session) {
  const SessionConfig& wanted = session.config;
  PagerConfig config;
  config.device = Bytes{wanted.device_budget_bytes};
  config.host = Bytes{wanted.host_budget_bytes};
  config.ssd_directory = wanted.ssd_directory.data();
  config.ssd_capacity = Bytes{wanted.ssd_capacity_bytes};
  config.method = method_of(wanted.eviction_path);
  // The supervisor prints it. Nothing else may run any more: threads wait for blocks that will never come.
  config.on_failure = [&session](const std::string& message) {
    session.state.error.set(message);
    ::_exit(1);
  };
  TRY(std::unique_ptr<Pager> pager, Pager::start(std::move(config)));
  return std::make_unique<PagedMemory>(session, std::move(pager));
}

}  // namespace spillway
