#include "machines/cpu/cpu_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "machines/real/clock.h"
#include "machines/real/ring.h"

namespace spillway {
namespace {

// How soon to look again while something waits that nobody rings the bell for.
constexpr std::chrono::microseconds kRetry{1000};

}  // namespace

CpuMachine::CpuMachine(const CpuMachineOptions& options, SpillFile& file, Doorbell bell, Userfault userfault,
                       MemoryRange range, ForkedChildren children, MemoryRange buffers_for_children)
    : RealMachine(std::move(bell), options.range_blocks, kBlockBytes),
      options_(options),
      file_(file),
      userfault_(std::move(userfault)),
      range_(std::move(range)),
      blocks_(options.range_blocks),
      mapped_(new std::atomic<bool>[options.range_blocks] {}),
      children_({range_, inbox_, stats_, options_.on_child_ended}, port_for_children(), std::move(children),
                std::move(buffers_for_children)) {}

Result<std::unique_ptr<CpuMachine>> CpuMachine::make(const CpuMachineOptions& options, SpillFile& file) {
  CHECK(options.device_frames > 1 && options.method != EvictionMethod::automatic);
  TRY(Doorbell bell, Doorbell::make(options.on_failure));
  TRY(Userfault userfault, Userfault::open());
  TRY(MemoryRange range, MemoryRange::reserve(options.range_blocks));
  TRY_VOID(userfault.watch(range.begin(), range.bytes()));
  TRY(ForkedChildren children, ForkedChildren::make());
  TRY(MemoryRange buffers_for_children, MemoryRange::reserve(ChildServer::kBufferBlocks));
  std::unique_ptr<CpuMachine> machine(new CpuMachine(options, file, std::move(bell), std::move(userfault),
                                                     std::move(range), std::move(children),
                                                     std::move(buffers_for_children)));
  const auto make_mapper = options.method == EvictionMethod::move ? make_moving_mapper : make_copying_mapper;
  TRY(machine->mapper_, make_mapper(machine->userfault_, options.device_frames, options.host_frames));
  TRY(auto ring, Ring::open(file.fd(), machine->bell_, machine->children_.fd(),
                            {machine->userfault_.fd(), machine->bell_.fd(), options.closed_after_file}));
  machine->ring_descriptor_ = ring->fd();
  machine->io_ = std::move(ring);
  if (options.around_io) machine->io_ = options.around_io(std::move(machine->io_));
  TRY(machine->reader_,
      FaultReader::start(machine->userfault_, machine->fault_queue_, machine->bell_, options.on_failure));
  return machine;
}

CpuMachine::~CpuMachine() {
  // The kernel must have let go of the buffers before they are unmapped, or a late read would hit whoever comes next.
  for (std::size_t under_way = writing_.count() + reading_.count() + children_.under_way(); under_way > 0;
       under_way -= std::min(under_way, ended_.size())) {
    ended_.clear();
    if (!io_->wait(ended_, std::nullopt)) break;
  }
}

bool CpuMachine::are_there(BlockRange blocks) const {
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value)
    if (!is_mapped(block)) return false;
  return true;
}

std::vector<int> CpuMachine::descriptors() const {
  return {userfault_.fd(), bell_.fd(), ring_descriptor_, file_.fd(), reader_->descriptor(), children_.fd()};
}

void CpuMachine::submit(std::span<const Command> commands) {
  for (const Command& command : commands) std::visit([&](const auto& what) { handle(what); }, command);
  pump();
}

void CpuMachine::handle(const Launch& command) { let_go(command.launch); }

Result<Stamped> CpuMachine::wait() {
  for (;;) {
    if (failure_) return std::unexpected(*failure_);
    if (stopped()) return fail(Errc::unavailable, "stopped");
    if (auto event = next_event()) return stamped(*std::move(event));
    settle_kept();
    pump();
    refuse_arrival();
    if (failure_ || !faults_.empty() || !answers_.empty()) continue;
    limit_waiting();
    const bool look_again = waits_for_room() || !delayed_.empty() || !kept_.empty();
    const std::optional<std::chrono::microseconds> timeout = look_again ? std::optional(kRetry) : std::nullopt;
    ended_.clear();
    TRY_VOID(io_->wait(ended_, timeout));
    answers_.insert(answers_.end(), delayed_.begin(), delayed_.end());
    delayed_.clear();
    delayed_are_waited_for_ = false;
    for (const Completion& completion : ended_) transfer_ended(completion);
    pump();
    collect();
  }
}

// Faults are taken before messages: whatever a thread told before it faulted is in the batch then.
void CpuMachine::collect() {
  if (fault_queue_.take_overflow()) userfault_.wake(range_.begin(), range_.bytes());
  children_.collect();
  while (const auto entry = fault_queue_.pop()) faults_.push_back(*entry);
  take_messages();
}

std::optional<Event> CpuMachine::next_event() {
  if (!answers_.empty()) {
    Event event = std::move(answers_.front());
    answers_.pop_front();
    return event;
  }
  if (auto event = next_message()) return event;
  while (!faults_.empty()) {
    const FaultQueue::Entry entry = faults_.front();
    faults_.pop_front();
    if (auto event = tell_fault(entry)) return event;
  }
  return std::nullopt;
}

void CpuMachine::forks(std::uint32_t fork, UniqueFd socket) { children_.take_snapshot(fork, std::move(socket)); }

BlockId CpuMachine::touched(const std::byte* address) const {
  const BlockId block{range_.index_of(address)};
  if (at(block).state != BlockState::in_pieces) return block;
  const auto offset = static_cast<std::uint64_t>(address - range_.block(block.value));
  return {pieces_of(block).first.value + static_cast<std::uint32_t>(offset / kPieceBytes.value)};
}

std::optional<Event> CpuMachine::tell_fault(const FaultQueue::Entry& entry) {
  if (!range_.contains(entry.fault.address)) {  // A frame off its block, protected while it was swapped out.
    userfault_.protect(page_of(entry.fault.address), kPageBytes, false);
    userfault_.wake(page_of(entry.fault.address), kPageBytes);
    return std::nullopt;
  }
  const BlockId id = touched(entry.fault.address);
  Block& block = at(id);
  const StreamId stream = streams_.of(entry.fault.thread);
  stall_.begin(id, stream, entry.at);
  if (is_mapped(id)) {
    if (entry.fault.write_protected ||
        children_.wants(block_of(id))) {  // Who misses a page asks again once the block is kept.
      if (!let_write(id)) awaiting_write_.push_back(id);
      return std::nullopt;
    }
    // It came in the meantime; or the script has dropped this page itself (madvise), and then it is zeroes.
    if (userfault_.zero(page_of(entry.fault.address), kPageBytes) != 0) userfault_.wake(address(id), size(id));
    stall_.end(id, now());
    return std::nullopt;
  }
  if (is_parked(block)) {
    if (put_back(id)) return Touched{id};
    awaiting_write_.push_back(id);
    return std::nullopt;
  }
  if (block.state == BlockState::resident) return std::nullopt;  // It waits for its first frame.
  if (!std::exchange(block.awaited, true)) block.state == BlockState::empty ? stats_.first_touch() : stats_.fault();
  if (block.state == BlockState::leaving && options_.method == EvictionMethod::copy) {
    // Somebody writes to a block that is being copied out: it stays, and the writer goes on at once.
    handle(Cancel{{block.job}});
    return std::nullopt;
  }
  return Faulted{stream, {id, 1}};
}

bool CpuMachine::holds_frame(const Block& block) const {
  switch (block.state) {
    case BlockState::empty:
    case BlockState::stored:
    case BlockState::in_pieces:
      return false;
    case BlockState::arriving:
      return jobs_.at(block.job).has_frames;
    case BlockState::resident:
    case BlockState::clean:
    case BlockState::leaving:
      return !block.blank;
  }
  return false;
}

void CpuMachine::check_invariants() const {
  if (failure_) return;  // What it could not do has been left as it was.
  Bytes device;
  std::uint32_t host = 0, ssd = 0, kept = 0;
  std::set<std::uint32_t> slots;
  const auto check = [&](BlockId id) {
    const Block& block = at(id);
    if (holds_frame(block)) device += Bytes{size(id)};
    const bool is_in_host =
        block.lower == Tier::host && (block.state == BlockState::stored || block.state == BlockState::arriving);
    host += is_in_host && !block.blank;
    ssd += block.has_slot;
    kept += block.kept;
    CHECK(!block.blank || block.state != BlockState::resident || std::ranges::count(awaiting_frame_, id) == 1);
    CHECK(!block.has_slot || slots.insert(block.slot).second);
    CHECK(copies_.contains(id) == (block.has_slot && block.state == BlockState::resident));
    CHECK(at(block_of(id)).has_slot || !block.stored);
    const bool is_moving = block.state == BlockState::leaving || block.state == BlockState::arriving;
    CHECK(block.transferring == 0 || is_moving);
    CHECK(!is_moving || jobs_.at(block.job).move.blocks.contains(id));
    CHECK(!is_mapped(id) || block.state == BlockState::resident || block.state == BlockState::leaving);
    CHECK(!block.kept || std::ranges::count(kept_, id) == 1);
  };
  for (BlockId id{0}; id.value < blocks_.size(); ++id.value) {
    check(id);
    CHECK(pieces_.contains(id) == (at(id).state == BlockState::in_pieces));
    const BlockRange pieces = pieces_of(id);
    for (BlockId piece = pieces.first; pieces_.contains(id) && piece < pieces.end(); ++piece.value) {
      CHECK(!at(piece).has_slot);
      check(piece);
    }
  }
  CHECK(device == device_in_use_);
  CHECK(host == host_in_use_ || (host < host_in_use_ && children_.has_forked()));  // Theirs may be in host frames.
  CHECK(ssd == ssd_in_use_ && ssd + children_.slots() == file_.slots_in_use());
  for (const BlockId id : awaiting_frame_) CHECK(at(id).blank);
  CHECK(kept_.size() == kept);
}

}  // namespace spillway
