#include "runtime/pager.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "executor/attention.h"
#include "journal/iteration_ends.h"
#include "machines/real/clock.h"

namespace spillway {
namespace {

// How long kernels may run before the run loop looks ahead again.
constexpr Nanos kWakeEvery{500'000};

std::vector<int> and_of(std::vector<int> descriptors, const JournalFile* journal) {
  if (journal != nullptr) descriptors.push_back(journal->descriptor());
  return descriptors;
}

// Without a journal the run is worth as much.
std::unique_ptr<JournalFile> start_journal(const JournalOptions& options) {
  if (options.path.empty()) return nullptr;
  auto journal = JournalFile::start(options);
  if (journal) return std::move(*journal);
  if (options.on_stop) options.on_stop("there is no journal: " + journal.error().message);
  return nullptr;
}

}  // namespace

Pager::Pager(PagerConfig config, std::unique_ptr<RealDevice> device, CpuDevice* cpu,
             std::unique_ptr<JournalFile> journal)
    : config_(std::move(config)),
      device_(std::move(device)),
      cpu_(cpu),
      journal_(std::move(journal)),
      traffic_(machine().blocks(), machine().block_bytes()),
      heap_(machine().blocks(), machine().block_bytes()),
      guard_(guard_forks()),
      loop_(*device_, config_, journal_.get(), {&traffic_}) {
  if (journal_ != nullptr) names_.emplace(*journal_);
}

std::unique_ptr<ForkGuard> Pager::guard_forks() {
  if (cpu_ == nullptr) return nullptr;
  CpuMachine& machine = cpu_->machine();
  return std::make_unique<ForkGuard>(machine.range().begin(), machine.range().bytes(),
                                     and_of(machine.descriptors(), journal_.get()),
                                     ForkPort{.before = [this] { return before_fork(); },
                                              .after = [&machine] { machine.children().fork_is_over(); },
                                              .in_child = [&machine] { return machine.children().enter_child(); }});
}

Result<std::unique_ptr<Pager>> Pager::start(PagerConfig config) {
  TRY(auto device, CpuDevice::open(config));
  CpuDevice* const cpu = device.get();
  return start(std::move(config), std::move(device), cpu);
}

Result<std::unique_ptr<Pager>> Pager::start(PagerConfig config, std::unique_ptr<RealDevice> device) {
  return start(std::move(config), std::move(device), nullptr);
}

Result<std::unique_ptr<Pager>> Pager::start(PagerConfig config, std::unique_ptr<RealDevice> device, CpuDevice* cpu) {
  std::unique_ptr<JournalFile> journal;
  {
    const DiskWait wait(config.disk_waits, WaitsFor::record);
    journal = start_journal(config.journal);
  }
  std::unique_ptr<Pager> pager(new Pager(std::move(config), std::move(device), cpu, std::move(journal)));
  TRY_VOID(pager->loop_.start());
  return pager;
}

Pager::~Pager() {
  if (active()) return;
  loop_.abandon();
  static_cast<void>(journal_.release());
  cpu_->abandon();
}

Result<void*> Pager::allocate(std::size_t bytes, std::optional<std::uint64_t> place, TensorLabel label) {
  if (!active()) return fail(Errc::unavailable, "managed memory is not available in a forked process");
  const Bytes wanted{std::max<std::size_t>(bytes, 1)};
  const MutexLock lock(mutex_);
  take_ended_apart();
  auto proposed = place ? heap_.propose_at(*place, wanted) : std::nullopt;
  if (!proposed) proposed = heap_.propose(wanted);
  if (!proposed) {
    const bool fits = device_->could_store(heap_.blocks_in_use() + wanted.value / block_bytes().value);
    return device_->no_room(
        wanted, tensors(), fits ? "no hole between the tensors' addresses is that large; free some tensors first" : "");
  }
  if (auto promised = device_->promise(heap_.blocks_in_use() + heap_.new_blocks(*proposed)); !promised) {
    heap_.cancel(*proposed);
    return device_->no_room(wanted, tensors(), promised.error().message);
  }
  const TensorHeap::Place taken = heap_.commit(*proposed);
  small_blocks_ = heap_.most_small_blocks();
  if (heap_.blocks_in_use() > most_blocks_) {
    most_blocks_ = heap_.blocks_in_use();
    if (config_.keeps_copies && device_->needs_ssd(most_blocks_)) device_->promise_copies(most_blocks_);
  }
  machine().inbox().allocated(taken.tensor, taken.blocks, label);
  return machine().begin() + taken.offset;
}

std::optional<BlockRange> Pager::set_apart(Bytes bytes) {
  const MutexLock lock(mutex_);
  take_ended_apart();
  const std::uint64_t block = block_bytes().value;
  return heap_.set_apart(static_cast<std::uint32_t>((bytes.value + block - 1) / block));
}

void Pager::end_apart(BlockRange apart) {
  const MutexLock lock(ended_apart_mutex_);
  ended_apart_.push_back(apart);
  some_apart_has_ended_.store(true, std::memory_order_relaxed);
}

// Before the heap is asked for addresses.
void Pager::take_ended_apart() {
  if (!some_apart_has_ended_.load(std::memory_order_relaxed)) return;
  const MutexLock lock(ended_apart_mutex_);
  some_apart_has_ended_.store(false, std::memory_order_relaxed);
  for (const BlockRange apart : ended_apart_) heap_.end_apart(apart);
  ended_apart_.clear();
}

std::uint64_t Pager::place_of(const void* memory) const {
  return static_cast<std::uint64_t>(static_cast<const std::byte*>(memory) - machine().begin());
}

void Pager::adopt(std::shared_ptr<const FollowedPlan> plan) { machine().inbox().adopted(std::move(plan)); }

void Pager::make_room_for(const FollowedPlan& plan) {
  // Without a host tier all that is not on the device has its place already.
  const bool fills_ssd =
      config_.host > Bytes{} && std::ranges::count(plan.commands.evictions, Tier::ssd, &Eviction::to) > 0;
  if (!fills_ssd && std::ranges::none_of(plan.commands.prefetches, &Prefetch::keeps_copy)) return;
  const MutexLock lock(mutex_);
  device_->promise_copies(most_blocks_);
}

std::optional<UniqueFd> Pager::before_fork() {
  {
    const MutexLock lock(mutex_);
    cpu_->forget_ended_children();
  }
  auto fork = cpu_->begin_fork();
  if (!fork) return std::nullopt;
  const MutexLock lock(mutex_);
  cpu_->promise_children(fork->slots, heap_.blocks_in_use());
  return std::move(fork->socket);
}

void Pager::free(void* memory) {
  if (memory == nullptr || !active()) return;
  CHECK(contains(memory));
  const MutexLock lock(mutex_);
  const auto place = heap_.remove(place_of(memory));
  CHECK(place.has_value());
  machine().inbox().freed(place->tensor, place->blocks);
}

// Looking ahead may be late by a little: that costs less than waking the run loop for every kernel.
bool Pager::is_time_to_wake() {
  const std::uint64_t at = now().value;
  if (at - woken_at_.load(std::memory_order_relaxed) < kWakeEvery.value) return false;
  woken_at_.store(at, std::memory_order_relaxed);
  return true;
}

void Pager::iteration_ended(const IterationEnded& ended) {
  if (active() && journal_) write(*journal_, ended);
}

void Pager::script_ends() {
  if (!active() || !journal_) return;
  machine().tell_all(kJournalPatience);  // Much of what needs nothing from the loop waits until it wakes.
  journal_->script_ended(kJournalPatience);
}

void Pager::kernel_ready(StreamId stream, const NextKernel& kernel, std::span<const ByteExtent> extents) {
  if (!active() || stream == Streams::kShared) return;
  if (names_) names_->name(kernel.execution, kernel.name);
  thread_local std::vector<BlockAccess> accesses;
  accesses.clear();
  bool all_there = true;
  const std::uint64_t each = block_bytes().value;
  for (const ByteExtent& extent : extents) {
    if (extent.bytes == 0 || !contains(extent.begin)) continue;
    const std::uint64_t begin = place_of(extent.begin);
    const std::uint64_t last = begin + std::min<std::uint64_t>(extent.bytes, machine().bytes().value - begin) - 1;
    const auto first = static_cast<std::uint32_t>(begin / each);
    const BlockRange blocks{{first}, static_cast<std::uint32_t>(last / each) - first + 1};
    accesses.push_back({blocks, extent.tensor, extent.writes, extent.sparse});
    if (extent.sparse) continue;  // What of it is touched nobody knows: it is left to faults.
    all_there = all_there && machine().are_there(blocks);
  }
  const RunPlan* plan = kernel.plan;
  CHECK(plan == nullptr || kernel.kernel.value < plan->followed.kernels);
  const auto has_frame = [&](BlockId block) { return machine().are_there({block, 1}); };
  const bool end_is_urgent = plan && plan->attention.at_end[kernel.kernel.value];
  const bool is_planned_for = plan && (plan->attention.at_start[kernel.kernel.value] ||
                                       lacks_frames_ahead(plan->followed, kernel.kernel, has_frame));
  const bool looks_ahead = !plan && config_.online != nullptr && is_short();
  const bool waits = (plan || looks_ahead) && !all_there;
  const bool urgent = waits || (looks_ahead && is_time_to_wake()) || is_planned_for;
  if (running_[stream.value].exchange(true, std::memory_order_relaxed))
    machine().inbox().kernel_done({stream, serials_[stream.value]});
  end_is_urgent_[stream.value] = end_is_urgent;
  const LaunchId launch{stream, ++serials_[stream.value]};
  if (waits) machine().stall().begin(now());  // before the run loop may look who waits
  machine().inbox().kernel_ready({.launch = launch,
                                  .kernel = plan ? kernel.kernel : kNoKernel,
                                  .accesses = accesses,
                                  .execution = kernel.execution,
                                  .waits = waits,
                                  .plan = plan ? plan->followed.id : PlanId{}},
                                 urgent);
  if (!waits) return;
  std::atomic<std::uint32_t>& launches = machine().launches(stream);
  for (std::uint32_t seen = launches.load(std::memory_order_acquire); seen != launch.serial;
       seen = launches.load(std::memory_order_acquire))
    launches.wait(seen, std::memory_order_acquire);
  machine().stall().end(now());
}

void Pager::kernel_done(StreamId stream) {
  if (!active()) return;
  if (!running_[stream.value].exchange(false, std::memory_order_relaxed)) return;
  machine().inbox().kernel_done({stream, serials_[stream.value]}, end_is_urgent_[stream.value]);
}

}  // namespace spillway
