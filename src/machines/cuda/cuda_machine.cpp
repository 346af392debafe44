#include "machines/cuda/cuda_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "machines/cuda/driver_scope.h"
#include "machines/real/clock.h"
#include "machines/real/ring.h"

namespace spillway {
namespace {

// The driver wakes nobody when a copy or a kernel is done: how soon to look while some are awaited.
constexpr std::chrono::microseconds kLook{50};
// How soon to look again while something waits for the script's threads, which ring for nothing.
constexpr std::chrono::microseconds kRetry{1000};
// How often to look whether a launch waits in vain, and how long it may.
constexpr std::chrono::microseconds kLookForEver{5'000'000};
constexpr Nanos kPatience{60'000'000'000};

}  // namespace

CudaMachine::CudaMachine(const CudaDriver& driver, const CudaMachineOptions& options, SpillFile& file, Doorbell bell,
                         CUcontext context, std::unique_ptr<DeviceMemory> memory, std::unique_ptr<CopyStream> up,
                         std::unique_ptr<CopyStream> down)
    : RealMachine(std::move(bell), options.range_blocks, options.block_bytes),
      driver_(driver),
      options_(options),
      file_(file),
      context_(context),
      memory_(std::move(memory)),
      up_(std::move(up)),
      down_(std::move(down)),
      host_(driver, options.host_slots, options.block_bytes),
      staging_(driver, options.staging_slots, options.block_bytes),
      script_streams_(driver, context, options.range_blocks),
      check_(options.strict
                 ? std::make_unique<LaunchCheck>(LaunchCheck::Around{driver, context, *memory_, *up_, *down_})
                 : nullptr),
      gate_({inbox_, bell_, streams_, stall_, *up_, script_streams_, driver, check_.get()}, options.range_blocks,
            options.device_frames, options.block_bytes),
      blocks_(options.range_blocks) {}

Result<std::unique_ptr<CudaMachine>> CudaMachine::make(const CudaDriver& driver, const CudaMachineOptions& options,
                                                       SpillFile& file) {
  CHECK(options.device_frames > 0 && options.staging_slots > 0);
  TRY_VOID(driver.check(driver.cuInit(0), "start CUDA"));
  CUdevice device = 0;
  TRY_VOID(driver.check(driver.cuDeviceGet(&device, options.device), "open the device"));
  CUcontext context = nullptr;
  TRY_VOID(driver.check(driver.cuDevicePrimaryCtxRetain(&context, device), "get a context"));
  const DriverScope scope(driver, context);  // The thread is the script's, and may have another device's.
  TRY(Doorbell bell, Doorbell::make());
  TRY(auto memory,
      DeviceMemory::make(driver, device, options.range_blocks, options.device_frames, options.block_bytes));
  TRY(auto up, CopyStream::make(driver));
  TRY(auto down, CopyStream::make(driver));
  std::unique_ptr<CudaMachine> machine(new CudaMachine(driver, options, file, std::move(bell), context,
                                                       std::move(memory), std::move(up), std::move(down)));
  TRY_VOID(machine->staging_.begin());
  TRY(machine->io_,
      Ring::open(file.fd(), machine->bell_, std::nullopt, {machine->bell_.fd(), options.closed_after_file}));
  if (options.around_io) machine->io_ = options.around_io(std::move(machine->io_));
  return machine;
}

CudaMachine::~CudaMachine() {
  gate_.end("the run has ended");
  // Nothing may be on its way to memory that is given up: a late read, a copy, or a kernel of the script's.
  for (std::size_t rest = reading_.count() + writing_.count(); rest > 0; rest -= std::min(rest, ended_.size())) {
    ended_.clear();
    if (!io_->wait(ended_, std::nullopt)) break;
  }
  script_streams_.wait_for_all();
  up_.reset();
  down_.reset();
}

void CudaMachine::stop() {
  gate_.end("the run has ended");
  RealMachine::stop();
}

bool CudaMachine::are_there(BlockRange blocks) const {
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value)
    if (!gate_.is_there(block)) return false;
  return true;
}

void CudaMachine::submit(std::span<const Command> commands) {
  for (const Command& command : commands) std::visit([&](const auto& what) { handle(what); }, command);
  pump();
}

void CudaMachine::handle(const Launch& command) { let_go(command.launch); }
void CudaMachine::handle(const Timer&) { CHECK(false && "no run follows a plan with delays"); }
void CudaMachine::handle(const Split&) { CHECK(false && "launches wait for whole blocks"); }
void CudaMachine::handle(const Join&) { CHECK(false && "no block is split"); }

void CudaMachine::handle(const Move& move) {
  CHECK(move.blocks.count > 0 && !jobs_.contains(move.id.value));
  CHECK((move.from == Tier::device) != (move.to == Tier::device));
  Job& job = jobs_[move.id.value];
  job.move = move;
  const bool down = move.from == Tier::device;
  for (BlockId id = move.blocks.first; id < move.blocks.end(); ++id.value) {
    Block& block = at(id);
    CHECK(down ? block.state == BlockState::resident : block.state == BlockState::stored && block.lower == move.from);
    block.state = down ? BlockState::leaving : BlockState::arriving;
    block.lower = down ? move.to : move.from;
    block.job = move.id.value;
  }
  if (down)
    begin_eviction(job);
  else
    job.step = Job::Step::frames;
}

Result<Stamped> CudaMachine::wait() {
  if (!std::exchange(has_context_, true)) {
    TRY_VOID(driver_.check(driver_.cuCtxSetCurrent(context_), "use the context"));
    // A graph that some thread captures must not end because this one makes memory meanwhile.
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    TRY_VOID(driver_.check(driver_.cuThreadExchangeStreamCaptureMode(&mode), "work beside captured graphs"));
  }
  for (;;) {
    if (failure_) return std::unexpected(*failure_);
    if (stopped()) return fail(Errc::unavailable, "stopped");
    if (auto event = next_event()) return stamped(*std::move(event));
    settle_kept();
    pump();
    refuse_arrival();
    give_up_waiting();
    if (failure_ || !answers_.empty()) continue;
    std::optional<std::chrono::microseconds> timeout;
    if (!delayed_.empty() || !kept_.empty() || std::exchange(waits_for_capture_, false)) timeout = kRetry;
    if (stall_.waits_since() && !timeout) timeout = kLookForEver;
    if (is_device_busy()) timeout = kLook;
    ended_.clear();
    if (const auto waited = io_->wait(ended_, timeout); !waited) {
      fail_for_good(waited.error());  // Who waits for blocks hears of it, too.
      continue;
    }
    answers_.insert(answers_.end(), delayed_.begin(), delayed_.end());
    delayed_.clear();
    for (const Completion& completion : ended_) transfer_ended(completion);
    pump();
    take_messages();
  }
}

// A launch or an operator waits, the GPU has nothing to do, and nothing has moved for long: rather an error than a run
// that hangs.
void CudaMachine::give_up_waiting() {
  const auto since = stall_.waits_since();
  if (!since || is_device_busy() || reading_.count() + writing_.count() > 0) return;
  // Somebody may be inside for long: in a copy that the driver waits for.
  const auto waits_inside = [](const auto& job) { return !job.second.inside.empty(); };
  if (std::ranges::any_of(jobs_, waits_inside) || std::ranges::any_of(drops_, waits_inside)) return;
  const Nanos waited = excess(now(), std::max(*since, progress_at_));
  if (waited < kPatience) return;
  const std::string text = fmt::format(
      "a launch or an operator has waited for {} for its memory, and nothing moves ({} of {} blocks of the device in "
      "use)",
      to_text(waited), memory_->frames_in_use(), options_.device_frames);
  fail_for_good({Errc::unavailable, host_.shortage().empty()
                                        ? "bug: " + text
                                        : fmt::format("{}; {}; give a smaller --host-memory", text, host_.shortage())});
}

std::optional<Event> CudaMachine::next_event() {
  if (!answers_.empty()) {
    Event event = std::move(answers_.front());
    answers_.pop_front();
    return event;
  }
  return next_message();
}

Event CudaMachine::misses(const Faulted& fault) {
  const BlockRange blocks = fault.blocks;
  for (BlockId id = blocks.first; id < blocks.end(); ++id.value)  // Others stay, since they are needed, too.
    if (!gate_.is_there(id)) at(id).state == BlockState::empty ? stats_.first_touch() : stats_.fault();
  return fault;
}

void CudaMachine::pump() {
  if (failure_) return;
  if (check_ == nullptr) return step_all();
  const MutexLock lock(check_->mutex());  // No launch runs.
  step_all();
}

// Each step takes what the steps before it have given back.
void CudaMachine::step_all() {
  poll_device();
  gate_.await_nobody();
  const auto step_jobs = [&](Tier from) {
    for (const Urgency urgency : {Urgency::fault, Urgency::need, Urgency::plan})
      for (auto at = jobs_.begin(); at != jobs_.end() && !failure_;) {
        const auto job = at++;
        if (job->second.move.urgency != urgency || (job->second.move.from == Tier::device) != (from == Tier::device))
          continue;
        if (from == Tier::device ? step_down(job->second) : step_up(job->second)) jobs_.erase(job);
      }
  };
  step_jobs(Tier::device);
  for (auto at = drops_.begin(); at != drops_.end() && !failure_;) {
    const auto drop = at++;
    if (step_drop({drop->first}, drop->second)) drops_.erase(drop);
  }
  populate_waiting();
  step_jobs(Tier::host);
  start_transfers();
  note_usage();
}

void CudaMachine::poll_device() {
  if (!holds(up_->poll()) || !holds(down_->poll()) || !holds(script_streams_.poll())) return;
  std::erase_if(lent_, [&](const Lent& lent) {
    if (lent.up > up_->done() || lent.down > down_->done()) return false;
    lent.pool->give_back(lent.slot);
    return true;
  });
}

void CudaMachine::start_transfers() {
  const auto start = [&](TransferQueue& queue, UnderWay& under_way, bool write) {
    while (!queue.empty() && under_way.may_start(queue.urgency())) {
      const BlockId id = queue.front();
      const Block& block = at(id);
      queue.pop();
      under_way.starts(jobs_.at(block.job).move.urgency);
      (write ? stats_.writes : stats_.reads).note(under_way.count(), {}, now());
      io_->start({.id = id.value,
                  .write = write,
                  .memory = block.staging,
                  .offset = file_.offset_of(*block.file_slot),
                  .bytes = block_bytes().value});
    }
  };
  start(reads_, reading_, false);
  start(writes_, writing_, true);
}

void CudaMachine::transfer_ended(const Completion& completion) {
  Job& job = jobs_.at(at({completion.id}).job);
  CHECK(job.step == Job::Step::transfers && job.rest > 0);
  const bool write = job.move.to == Tier::ssd;
  UnderWay& under_way = write ? writing_ : reading_;
  under_way.ends(job.move.urgency);
  (write ? stats_.writes : stats_.reads)
      .note(under_way.count(), completion.error == 0 ? block_bytes() : Bytes{}, now());
  if (write && completion.error == 0) stats_.wrote(block_bytes());
  if (completion.error != 0) {
    job.error = completion.error;
    stats_.transfer_failed(completion.error);
  }
  --job.rest;  // The next step looks at it.
}

// The job is over.
void CudaMachine::answer(const Job& job, bool done) {
  const Move& move = job.move;
  CHECK(job.dropped + job.blank <= move.blocks.count);
  if (done) {
    progress_at_ = now();
    stats_.moved(move.from, move.to, block_bytes() * (move.blocks.count - job.dropped - job.blank));
    stats_.dropped_clean(block_bytes() * job.dropped);
  }
  answers_.push_back(done ? Event(MoveDone{move.id}) : Event(MoveFailed{move.id, job.cancelled && job.error == 0}));
}

bool CudaMachine::holds(const Result<>& result) {
  if (!result) fail_for_good(result.error());
  return result.has_value();
}

void CudaMachine::fail_for_good(const Error& error) {
  if (!failure_) failure_ = error;
  gate_.end(failure_->message);
}

void CudaMachine::note_usage() {
  CHECK(memory_->frames_in_use() <= options_.device_frames);
  stats_.holds(Tier::device, block_bytes() * memory_->frames_in_use());
  stats_.holds(Tier::host, block_bytes() * host_.slots_in_use());
  stats_.holds(Tier::ssd, block_bytes() * file_.slots_in_use());
}

void CudaMachine::check_invariants() const {
  if (failure_) return;  // What it could not do has been left as it was.
  std::uint32_t frames = 0, slots = 0, staging = 0, file_slots = 0, kept = 0;
  std::set<std::uint32_t> file;
  for (BlockId id{0}; id.value < blocks_.size(); ++id.value) {
    const Block& block = at(id);
    const bool mapped = memory_->is_mapped(id);
    frames += mapped;
    slots += block.slot != nullptr;
    staging += block.staging != nullptr;
    file_slots += block.file_slot.has_value();
    kept += block.kept;
    CHECK(!block.file_slot || file.insert(*block.file_slot).second);
    CHECK(!gate_.is_there(id) || mapped);
    const bool is_moving = block.state == BlockState::leaving || block.state == BlockState::arriving;
    CHECK(!is_moving || jobs_.at(block.job).move.blocks.contains(id));
    CHECK(block.staging == nullptr || is_moving);
    switch (block.state) {
      case BlockState::empty:
        CHECK(mapped == (block.kept || drops_.contains(id.value)) && !block.blank);
        break;
      case BlockState::resident:
        CHECK(mapped != block.blank);
        CHECK(!block.blank || std::ranges::count(awaiting_frame_, id) == 1);
        break;
      case BlockState::leaving:
        CHECK(mapped != block.blank);
        break;
      case BlockState::stored:
        CHECK(!mapped);
        CHECK(block.blank || (block.lower == Tier::host ? block.slot != nullptr : block.file_slot.has_value()));
        break;
      case BlockState::arriving:
        break;
      case BlockState::clean:
      case BlockState::in_pieces:
        CHECK(false);
    }
    CHECK(copies_.contains(id) == (block.file_slot && block.state == BlockState::resident));
  }
  CHECK(frames == memory_->frames_in_use());
  CHECK(file_slots == file_.slots_in_use());
  CHECK(kept == kept_.size());
  const auto lent = [&](const PinnedMemory& pool) {
    return static_cast<std::uint32_t>(std::ranges::count(lent_, &pool, &Lent::pool));
  };
  CHECK(slots + lent(host_) == host_.slots_in_use());
  CHECK(staging + lent(staging_) == staging_.slots_in_use());
}

}  // namespace spillway
