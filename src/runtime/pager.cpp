#include "runtime/pager.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/files.h"
#include "base/text.h"
#include "machines/cpu/choose_eviction.h"
#include "machines/cpu/clock.h"
#include "machines/cpu/quiet_thread.h"
#include "machines/cpu/ring.h"
#include "memory/page_table.h"

namespace spillway {
namespace {

// Blocks that are never promised: a block on its way counts on two tiers, and something must be able to move.
constexpr std::uint32_t kSlackBlocks = 16;
// How long kernels may run before the run loop looks ahead again.
constexpr Nanos kWakeEvery{500'000};
// With so many planned blocks in flight on a link no more moves are started: one of 16 waits behind one of 16, so that
// the disk has work while blocks are mapped, and no more, since what is in flight keeps its turn. A small device, whose
// moves are smaller, has a quarter of its blocks.
constexpr std::uint32_t kPlannedInFlight = 17;
// How long the end may wait for the journal's disk.
constexpr Nanos kJournalPatience{2'000'000'000};

std::vector<int> and_of(std::vector<int> descriptors, const JournalFile* journal) {
  if (journal != nullptr) descriptors.push_back(journal->descriptor());
  return descriptors;
}

// Where it cannot be had nobody waits for it.
std::optional<UniqueFd> open_teardown(const std::string& path) {
  const int fd = path.empty() ? -1 : ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  return UniqueFd(fd);
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

Pager::Pager(PagerConfig config, EvictionMethod method, std::unique_ptr<SpillFile> file,
             std::unique_ptr<CpuMachine> machine, std::unique_ptr<JournalFile> journal)
    : config_(std::move(config)),
      method_(method),
      file_(std::move(file)),
      machine_(std::move(machine)),
      journal_(std::move(journal)),
      traffic_(machine_->range().blocks()),
      heap_(machine_->range().blocks()),
      guard_(std::make_unique<ForkGuard>(machine_->range().begin(), machine_->range().bytes(),
                                         and_of(machine_->descriptors(), journal_.get()),
                                         ForkPort{.before = [this] { return before_fork(); },
                                                  .after = [this] { machine_->children().fork_is_over(); },
                                                  .in_child = [this] { return machine_->children().enter_child(); }})) {
}

Result<Pager::Found> Pager::check(const PagerConfig& config) {
  TRY(const PagerSize size, size_of(config));
  TRY(SpillFile file, SpillFile::open(config.ssd_directory, config.ssd_capacity));
  TRY(const EvictionMethod method, choose(config.method));
  TRY_VOID(file.reserve(1));
  TRY(const Doorbell bell, Doorbell::make());
  TRY(const auto ring, Ring::open(file.fd(), bell));
  TRY(const MemoryRange range, MemoryRange::reserve(range_blocks(size, file.capacity_slots())));
  for (const bool write : {true, false}) {
    ring->start({.id = 0, .write = write, .memory = range.begin(), .offset = 0});
    std::vector<Completion> ended;
    while (ended.empty()) TRY_VOID(ring->wait(ended, std::nullopt));
    if (const int error = ended.front().error; error != 0)
      return fail(Errc::io, fmt::format("cannot spill to {}: a trial block cannot be {}: {}; name another directory "
                                        "with --ssd",
                                        config.ssd_directory, write ? "written" : "read back", errno_text(error)));
  }
  return Found{.method = method, .ssd = kBlockBytes * file.capacity_slots()};
}

Result<std::unique_ptr<Pager>> Pager::start(PagerConfig config) {
  TRY(const PagerSize size, size_of(config));
  TRY(const EvictionMethod method, choose(config.method));
  std::unique_ptr<SpillFile> file;
  {
    const DiskWait wait(config.asks_for_space);
    TRY(SpillFile opened, SpillFile::open(config.ssd_directory, config.ssd_capacity));
    file = std::make_unique<SpillFile>(std::move(opened));
  }
  const auto teardown = open_teardown(config.teardown_path);
  TRY(auto machine, CpuMachine::make({.device_frames = size.device_frames,
                                      .host_frames = size.host_frames,
                                      .range_blocks = range_blocks(size, file->capacity_slots()),
                                      .method = method,
                                      .closed_after_file = teardown ? teardown->get() : -1,
                                      .patience = config.patience,
                                      .on_failure = config.on_failure,
                                      .on_child_ended = config.on_child_ended,
                                      .around_io = config.around_io},
                                     *file));
  std::unique_ptr<JournalFile> journal;
  {
    const DiskWait wait(config.begins_journal);
    journal = start_journal(config.journal);
  }
  std::unique_ptr<Pager> pager(
      new Pager(std::move(config), method, std::move(file), std::move(machine), std::move(journal)));
  TRY(pager->thread_, quiet_thread("spillway-loop", [self = pager.get()] { self->run(); }));
  return pager;
}

Pager::~Pager() {
  if (guard_->in_child()) {  // Threads and descriptors are the parent's.
    thread_.detach();
    static_cast<void>(machine_.release());
    static_cast<void>(journal_.release());
    static_cast<void>(file_.release());
    return;
  }
  machine_->stop();
  if (thread_.joinable()) thread_.join();
}

// The only thread that uses executor and machine. It allocates (malloc), but touches no managed memory and takes no
// lock that a thread could hold while it faults.
void Pager::run() noexcept {
  machine_->run_loop_is(::gettid());
  PageTable table({kBlockBytes * machine_->device_blocks(), kBlockBytes * (config_.host.value / kBlockBytes.value),
                   kBlockBytes * file_->capacity_slots()});
  table.add_blocks(machine_->range().blocks(), kBlockBytes);
  ExecutorOptions options;
  options.migration.keeps_copies = config_.keeps_copies;
  options.migration.keep_dead_blocks = true;
  options.migration.planned_in_flight = std::clamp(machine_->device_blocks() / 4, 1u, kPlannedInFlight);
  JournalledExecutor executor(std::move(table), options, {config_.online, config_.device},
                              {journal_.get(), config_.iterations});
  std::vector<Command> commands;
  for (;;) {
    const auto event = machine_->wait();
    if (!event && machine_->stopped()) return;
    if (!event) return fail_for_good(event.error().message);
    if (std::holds_alternative<KernelReady>(event->what)) follow_new_plan(executor);
    traffic_.told(event->what);
    executor.on(*event, commands);
    if (executor.failure()) return fail_for_good(explain(*executor.failure()));
    traffic_.asked(commands);
    machine_->submit(commands);
    if (config_.on_progress && !machine_->has_events()) config_.on_progress(stats());
  }
}

std::string Pager::explain(const Failure& failure) const {
  const int error = machine_->stats().last_transfer_error();
  const std::string_view remedy =
      error == EFBIG   ? "; the script has lowered its limit on file sizes (ulimit -f)"
      : error == EROFS ? "; the file system there takes no more writes, as after an error of its disk: see dmesg, or "
                         "name another directory with --ssd"
                       : "";
  const std::string cause =
      error == 0 ? "" : fmt::format(" (the last transfer that failed: {}{})", errno_text(error), remedy);
  switch (failure.kind) {
    case Failure::Kind::no_room:
      return fmt::format("{} must leave the device and no other tier takes them{}: device {}, host {}, ssd {} in {}",
                         to_text(failure.bytes), cause, to_text(config_.device), to_text(config_.host),
                         to_text(kBlockBytes * file_->capacity_slots()), config_.ssd_directory);
    case Failure::Kind::device_too_small:
      return fmt::format(
          "device memory {} is {} too small for what has to be there at a time; give more with "
          "--device-memory",
          to_text(config_.device), to_text(failure.bytes));
    case Failure::Kind::unreadable:
      return fmt::format(
          "{} cannot be read back from {}{}; the tensors in them are lost. Check the device's health, or "
          "name another directory with --ssd",
          to_text(failure.bytes), config_.ssd_directory, cause);
  }
  return "unknown failure";
}

void Pager::fail_for_good(const std::string& message) noexcept {
  if (config_.on_progress) config_.on_progress(stats());
  if (journal_) journal_->flush(kJournalPatience);
  config_.on_failure(message);
}

Result<void*> Pager::allocate(std::size_t bytes, std::optional<std::uint64_t> place, TensorLabel label) {
  if (!active()) return fail(Errc::unavailable, "managed memory is not available in a forked process");
  const Bytes wanted{std::max<std::size_t>(bytes, 1)};
  const std::lock_guard lock(mutex_);
  auto proposed = place ? heap_.propose_at(*place, wanted) : std::nullopt;
  if (!proposed) proposed = heap_.propose(wanted);
  if (!proposed) {
    const bool fits = slots_needed(heap_.blocks_in_use() + wanted.value / kBlockBytes.value) <= file_->capacity_slots();
    return no_room(wanted, fits ? "no hole between the tensors' addresses is that large; free some tensors first" : "");
  }
  if (auto reserved = reserve(heap_.blocks_in_use() + heap_.new_blocks(*proposed), wanted); !reserved) {
    heap_.cancel(*proposed);
    return std::unexpected(std::move(reserved).error());
  }
  const TensorHeap::Place taken = heap_.commit(*proposed);
  if (heap_.blocks_in_use() > most_blocks_) {
    most_blocks_ = heap_.blocks_in_use();
    if (config_.keeps_copies && slots_needed(most_blocks_) > 0) reserve_for_copies();
  }
  machine_->inbox().allocated(taken.tensor, taken.blocks, label);
  if (heap_.blocks_in_use() > machine_->device_blocks()) memory_is_short_.store(true, std::memory_order_relaxed);
  return machine_->range().begin() + taken.offset;
}

std::optional<BlockRange> Pager::set_apart(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  return heap_.set_apart(static_cast<std::uint32_t>((bytes.value + kBlockBytes.value - 1) / kBlockBytes.value));
}

void Pager::give_up(BlockRange apart) {
  const std::lock_guard lock(mutex_);
  heap_.give_up(apart);
}

std::uint64_t Pager::place_of(const void* memory) const {
  return static_cast<std::uint64_t>(static_cast<const std::byte*>(memory) - machine_->range().begin());
}

std::uint32_t Pager::small_blocks() {
  const std::lock_guard lock(mutex_);
  return heap_.most_small_blocks();
}

void Pager::adopt(std::shared_ptr<const RunPlan> plan) {
  CHECK(plan->starts.size() == plan->kernels && plan->ends.size() == plan->kernels);
  // Without a host tier all that is not on the device has its place already.
  const bool fills_ssd =
      config_.host > Bytes{} && std::ranges::count(plan->plan.evictions, Tier::ssd, &Eviction::to) > 0;
  if (fills_ssd || std::ranges::any_of(plan->plan.prefetches, &Prefetch::keeps_copy)) {
    const std::lock_guard lock(mutex_);
    reserve_for_copies();
  }
  const std::lock_guard lock(plan_mutex_);
  adopted_ = std::move(plan);
  adopted_is_new_.store(true, std::memory_order_release);
}

void Pager::follow_new_plan(JournalledExecutor& executor) {
  if (!adopted_is_new_.load(std::memory_order_acquire)) return;
  std::shared_ptr<const RunPlan> next;
  {
    const std::lock_guard lock(plan_mutex_);
    adopted_is_new_.store(false, std::memory_order_relaxed);
    next = std::move(adopted_);
  }
  executor.adopt(next->plan, next->kernels, {next->homes, next->rows, next->births});
  followed_ = std::move(next);
}

// So that these blocks can be stored.
std::uint64_t Pager::slots_needed(std::uint64_t blocks) const {
  const std::uint64_t in_memory = machine_->device_blocks() + config_.host.value / kBlockBytes.value;
  const std::uint64_t needed = blocks + kSlackBlocks;
  return needed <= in_memory ? 0 : needed - in_memory;
}

// Nothing is granted that could not be stored: what memory cannot hold has its space on the SSD.
Result<> Pager::reserve(std::uint32_t blocks, Bytes wanted) {
  const std::uint64_t slots = slots_needed(blocks) + slots_for_children();
  if (slots <= file_->reserved_slots()) return {};
  std::string reason;
  if (slots <= file_->capacity_slots()) {
    const DiskWait wait(config_.asks_for_space);
    auto reserved = file_->reserve(static_cast<std::uint32_t>(slots));
    if (reserved) return {};
    reason = reserved.error().message;
  }
  return no_room(wanted, reason);
}

// With the mutex held. `reason` says what else there is to say, and its remedy; without one the tiers are too small.
std::unexpected<Error> Pager::no_room(Bytes wanted, std::string_view reason) const {
  std::string text =
      fmt::format("no room for {}: tensors take {} already", to_text(wanted), to_text(heap_.bytes_in_use()));
  // What small tensors leave of their blocks when they die serves small ones only.
  const Bytes blocks = kBlockBytes * heap_.blocks_in_use();
  if (blocks > heap_.bytes_in_use())
    text += fmt::format(" in {} of blocks of {}", to_text(blocks), to_text(kBlockBytes));
  text += fmt::format("; device memory {}, host memory {}, ssd {} in {}; of all that {} stay free for moves",
                      to_text(config_.device), to_text(config_.host), to_text(kBlockBytes * file_->capacity_slots()),
                      config_.ssd_directory, to_text(kBlockBytes * kSlackBlocks));
  if (slots_for_children_ != 0)
    text += fmt::format(" and {} are kept for forked processes (fewer workers need less)",
                        to_text(kBlockBytes * slots_for_children_));
  text += "; ";
  text += reason.empty() ? file_->remedy() : reason;
  return fail(Errc::out_of_memory, std::move(text));
}

// A slot for every block that there was at a time, as far as there is plenty of space: what is clean has one while it
// is on the device, too. Copies give way where that is not had. With the mutex held.
void Pager::reserve_for_copies() {
  const DiskWait wait(config_.asks_for_space);
  file_->reserve_if_plenty(most_blocks_ + kSlackBlocks + slots_for_children());
}

// With the mutex held.
std::uint32_t Pager::slots_for_children() {
  if (!machine_->children().is_serving()) slots_for_children_ = 0;
  return slots_for_children_;
}

// The children are promised space for all that they could ask for, since what is kept for them must not take the place
// of tensors; half of what there is where that is too little, and the script needs the other half.
std::optional<UniqueFd> Pager::before_fork() {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
  UniqueFd ours = out_of_reach(UniqueFd(ends[0])), theirs = out_of_reach(UniqueFd(ends[1]));
  // Two more will come from the child.
  for (const int spare : {::dup(ours.get()), ::dup(ours.get())})
    if (spare < 0 || ::close(spare) != 0) return std::nullopt;
  {
    const std::lock_guard lock(mutex_);
    slots_for_children();  // Those of children that have ended are nobody's.
  }
  const auto demand = machine_->children().begin_fork(std::move(ours));
  if (!demand) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const std::uint64_t own = slots_needed(heap_.blocks_in_use()), all = file_->capacity_slots();
  const std::uint64_t rest = own < all ? all - own : 0;
  // What has been promised already stands.
  const std::uint64_t promised = *demand <= rest ? *demand : std::max<std::uint64_t>(rest / 2, slots_for_children());
  const DiskWait wait(config_.asks_for_space);
  if (own + promised <= all && file_->reserve(static_cast<std::uint32_t>(own + promised)))
    slots_for_children_ = static_cast<std::uint32_t>(promised);
  machine_->children().allow(slots_for_children());
  return theirs;
}

void Pager::free(void* memory) {
  if (memory == nullptr || !active()) return;
  CHECK(contains(memory));
  const std::lock_guard lock(mutex_);
  const auto place =
      heap_.remove(static_cast<std::uint64_t>(static_cast<std::byte*>(memory) - machine_->range().begin()));
  CHECK(place.has_value());
  machine_->inbox().freed(place->tensor, place->blocks);
}

// Whether what the kernels after this one make has no frames yet.
bool Pager::needs_frames(const NextKernel& kernel) const {
  const RunPlan& plan = *kernel.plan;
  for (std::uint32_t next = kernel.kernel.value + 1;
       next < plan.kernels && next < kernel.kernel.value + Executor::kBirthsAhead; ++next)
    for (const BlockRange& blocks : plan.births[next])
      for (BlockId block = blocks.first; block < blocks.end(); ++block.value)
        if (!machine_->is_mapped(block)) return true;
  return false;
}

// Looking ahead may be late by a little: that costs less than waking the run loop for every kernel.
bool Pager::is_time_to_wake() {
  const std::uint64_t at = now().value;
  if (at - woken_at_.load(std::memory_order_relaxed) < kWakeEvery.value) return false;
  woken_at_.store(at, std::memory_order_relaxed);
  return true;
}

void Pager::script_ends() {
  if (!active() || !journal_) return;
  machine_->tell_all(kJournalPatience);  // Much of what needs nothing from the loop waits until it wakes.
  journal_->script_ended(kJournalPatience);
}

void Pager::kernel_ready(StreamId stream, const NextKernel& kernel, std::span<const ByteExtent> extents) {
  if (!active() || stream == Streams::kShared) return;
  thread_local std::vector<BlockAccess> accesses;
  accesses.clear();
  bool all_there = true;
  for (const ByteExtent& extent : extents) {
    if (extent.bytes == 0 || !contains(extent.begin)) continue;
    const MemoryRange& range = machine_->range();
    const auto* begin = static_cast<const std::byte*>(extent.begin);
    const auto* last = begin + std::min(extent.bytes, static_cast<std::size_t>(range.end() - begin)) - 1;
    const BlockId first{range.index_of(begin)};
    const BlockRange blocks{first, range.index_of(last) - first.value + 1};
    accesses.push_back({blocks, extent.tensor, extent.writes, extent.sparse});
    if (extent.sparse) continue;  // What of it is touched nobody knows: it is left to faults.
    for (BlockId block = blocks.first; block < blocks.end() && all_there; ++block.value)
      all_there = machine_->is_mapped(block);
  }
  kernel_done(stream);  // Should its end have been missed.
  running_[stream.value].store(true, std::memory_order_relaxed);
  CHECK(kernel.plan == nullptr || kernel.kernel.value < kernel.plan->kernels);
  const bool planned = kernel.plan != nullptr;
  end_is_urgent_[stream.value] = planned && kernel.plan->ends[kernel.kernel.value];
  const bool looks_ahead = !planned && config_.online != nullptr && memory_is_short_.load(std::memory_order_relaxed);
  const bool waits = (planned || looks_ahead) && !all_there;
  const bool urgent = waits || (looks_ahead && is_time_to_wake()) ||
                      (planned && (kernel.plan->starts[kernel.kernel.value] || needs_frames(kernel)));
  machine_->inbox().kernel_ready({stream, planned ? kernel.kernel : kNoKernel, accesses, kernel.execution, waits},
                                 urgent);
  const std::uint32_t own = ++readied_[stream.value];
  if (!waits) return;
  machine_->stall().begin(now());
  std::atomic<std::uint32_t>& launches = machine_->launches(stream);
  for (std::uint32_t seen = launches.load(std::memory_order_acquire); seen != own;
       seen = launches.load(std::memory_order_acquire))
    launches.wait(seen, std::memory_order_acquire);
  machine_->stall().end(now());
}

void Pager::kernel_done(StreamId stream) {
  if (!active() || !running_[stream.value].exchange(false, std::memory_order_relaxed)) return;
  machine_->inbox().kernel_done(stream, end_is_urgent_[stream.value]);
}

PagerStats Pager::stats() const {
  const CpuStats& counted = machine_->stats();
  PagerStats stats{.faults = counted.faults(),
                   .first_touches = counted.first_touches(),
                   .moved = {},
                   .written = counted.written(),
                   .dropped_clean = counted.dropped_clean(),
                   .unseen_writes = counted.unseen_writes(),
                   .held = {},
                   .peak = {},
                   .stall = machine_->stall().total(now())};
  for (const Tier from : kTiers) {
    stats.held[from] = counted.held(from);
    stats.peak[from] = counted.peak(from);
    for (const Tier to : kTiers)
      if (from != to) stats.moved(from, to) = counted.moved(from, to);
  }
  return stats;
}

}  // namespace spillway
