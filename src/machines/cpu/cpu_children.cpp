#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "base/text.h"
#include "machines/cpu/clock.h"
#include "machines/cpu/copy_block.h"
#include "machines/cpu/cpu_machine.h"

// See Note [Forked children].
namespace spillway {
namespace {

constexpr ForkGate::Patience kUntilSnapshot{10'000}, kUntilForked{10'000};
constexpr std::uint32_t kNow = UINT32_MAX;  // no block's number: the transfer that is waited for
// A child gets so much at once: it pays for every page that it never asked for with memory of its own.
constexpr std::size_t kPieceBytes = 64 << 10;
constexpr std::uint32_t kKeptBetweenLooks = 32;

}  // namespace

void CpuMachine::end_child(const ForkedChildren::Child& child, std::string_view why) {
  kill_process(child.process);
  const std::string sentence = fmt::format("a forked process has been ended: {}", why);
  tell_later(fmt::format("spillway: {}\n", sentence));
  if (options_.on_child_ended) options_.on_child_ended(sentence);
}

std::optional<std::uint32_t> CpuMachine::fork_begins(UniqueFd socket) {
  const ForkGate::Ticket ticket = fork_gate_.begin();
  inbox_.forking(ticket, std::move(socket));
  if (!fork_gate_.wait_for_snapshot(kUntilSnapshot)) return std::nullopt;
  return wanted_for_children_.load(std::memory_order_acquire);
}

// Only behind a closed gate does the run loop stand still, and with it what it knows of the children.
bool CpuMachine::enter_child() {
  if (!fork_gate_.is_closed()) return false;
  children_.abandon();
  return true;
}

// All that the thread has told before has been taken in by now. Every mapped block is protected, whether somebody's or
// not: what is written from now on is written after the fork.
void CpuMachine::take_snapshot(ForkGate::Ticket fork, UniqueFd socket) {
  if (!fork_gate_.is_wanted(fork)) return;
  children_.drop_ended([&](SnapshotId snapshot) { let_go(snapshot); });
  std::vector<bool> nobodys(range_.blocks());
  for (BlockId id{0}; id.value < range_.blocks(); ++id.value) {
    const Block& block = at(id);
    const bool has_none = block.tensors == 0 || block.state == BlockState::empty || block.blank;
    nobodys[id.value] = has_none && !snapshots_.wants(id);  // An earlier child may still see who lived there.
  }
  const SnapshotId snapshot = snapshots_.take();
  if (!children_.expect(std::move(socket), snapshot)) {
    let_go(snapshot);
    return fork_gate_.refuse(fork);
  }
  has_forked_ = true;
  serves_children_.store(true, std::memory_order_release);
  std::uint32_t wanted = 0;
  for (BlockId id{0}; id.value < range_.blocks(); ++id.value) {
    const bool is_protected = !is_mapped(id) || userfault_.protect(address(id), kBlockBytes.value, true) == 0;
    // Another thread has made a tensor in its frame, and that is told after the fork.
    const bool is_new = is_mapped(id) && inbox_.allocations(id) != at(id).told_allocations;
    if (nobodys[id.value] && !is_new)
      snapshots_.has_no_bytes(id);
    else if (!is_protected)
      snapshots_.lose(id);
    else
      ++wanted;
  }
  wanted_for_children_.store(snapshots_.slots() + wanted, std::memory_order_release);
  fork_gate_.taken_until_over(fork, kUntilForked);
}

void CpuMachine::collect_children() {
  children_.collect([&](SnapshotId snapshot) { snapshots_.hold(snapshot); },
                    [&](const ForkedChildren::Child& child, std::byte* at) { serve(child, at); },
                    [&](SnapshotId snapshot) { let_go(snapshot); });
}

void CpuMachine::let_go(SnapshotId snapshot) {
  for (const std::uint32_t slot : snapshots_.drop(snapshot)) {
    file_.give_back(slot);
    --ssd_in_use_;
  }
  serves_children_.store(!snapshots_.empty(), std::memory_order_release);
  note_usage();
}

void CpuMachine::serve(const ForkedChildren::Child& child, std::byte* address) {
  const BlockId id{range_.index_of(address)};
  const Block& block = at(id);
  Snapshots::View view = snapshots_.find(child.snapshot, id);
  const std::byte* bytes = view.where == Snapshots::View::Where::block ? bytes_in_memory(id) : nullptr;
  if (view.where == Snapshots::View::Where::block && bytes == nullptr)
    view = {Snapshots::View::Where::slot, block.slot};
  if (view.where == Snapshots::View::Where::lost)
    return end_child(child,
                     "it wants a tensor as it was when the process was forked, and that could not be kept: the SSD had "
                     "no space (give more with --ssd-capacity, free some, or fork fewer processes) or failed, or the "
                     "parent held the tensor's pages (direct I/O)");
  const auto offset = static_cast<std::size_t>(address - this->address(id));
  const auto give = [&](std::size_t from, std::size_t size) {
    std::byte* to = this->address(id) + from;
    if (view.where == Snapshots::View::Where::nowhere) return child.faults.zero(to, size);
    if (view.where == Snapshots::View::Where::block) return child.faults.copy(to, bytes + from, size);
    if (const int error = transfer_now({.id = kNow,
                                        .write = false,
                                        .memory = bounce_.begin(),
                                        .offset = view.slot * kBlockBytes.value + from,
                                        .bytes = size}))
      return error;
    return child.faults.copy(to, bounce_.begin(), size);
  };
  int error = give(offset / kPieceBytes * kPieceBytes, kPieceBytes);
  // Some of it is there, or is no tensor's memory any more: what the child has done with it.
  if (error != 0 && error != ESRCH) error = give(offset / kPageBytes * kPageBytes, kPageBytes);
  if (error == 0 || error == EEXIST)
    child.faults.wake(this->address(id), kBlockBytes.value);
  else if (error != ESRCH)  // It has ended, or runs another program.
    end_child(child, fmt::format("a tensor of its parent cannot be copied for it: {}", errno_text(error)));
}

// Where the block's bytes are now, unless on the SSD.
const std::byte* CpuMachine::bytes_in_memory(BlockId id) const {
  const Block& block = blocks_[id.value];
  if (is_mapped(id)) return address(id);
  const bool is_being_read = block.state == BlockState::arriving && block.lower == Tier::ssd;
  return is_being_read ? nullptr : block.buffer;
}

// To be called before the block can change, or its bytes go.
void CpuMachine::keep_for_children(BlockId id) {
  if (!snapshots_.wants(id)) return;
  Block& block = at(id);
  const bool has_room = snapshots_.slots() < slots_for_children_.load(std::memory_order_acquire);
  if (const std::byte* bytes = bytes_in_memory(id); bytes == nullptr) {
    CHECK(block.has_slot);
    if (!has_room) return snapshots_.lose(id);
    snapshots_.keep(id, block.slot);
    block.has_slot = false;
    block.stored.reset();
  } else {
    const auto slot = has_room ? take_slot() : std::nullopt;
    if (!slot) return snapshots_.lose(id);
    if (keep_copy(bytes, *slot) != 0) {
      file_.give_back(*slot);
      return snapshots_.lose(id);
    }
    ++ssd_in_use_;
    snapshots_.keep(id, *slot);
  }
  if (++kept_since_look_ >= kKeptBetweenLooks) {
    kept_since_look_ = 0;
    children_.drop_ended([&](SnapshotId snapshot) { let_go(snapshot); });
  }
  note_usage();
}

// Not written from where it is: of a page that the script has dropped, the kernel would ask us in another thread's
// name.
int CpuMachine::keep_copy(const std::byte* bytes, std::uint32_t slot) {
  copy_block(bounce_.begin(), bytes);
  const int error =
      transfer_now({.id = kNow, .write = true, .memory = bounce_.begin(), .offset = slot * kBlockBytes.value});
  if (error == 0) stats_.wrote(kBlockBytes);
  return error;
}

// Somebody waits to write to a block that is protected for the sake of children, or was.
void CpuMachine::let_write(BlockId id) {
  keep_for_children(id);
  if (const int error = userfault_.protect(address(id), kBlockBytes.value, false); error != 0)
    give_up("let the script write to a block again", error);
  userfault_.wake(address(id), kBlockBytes.value);
}

// 0 or an errno. Rare, and simpler than to go on meanwhile: after a fork each block is kept once, if at all.
int CpuMachine::transfer_now(const Transfer& transfer) {
  waited_meanwhile_ = true;  // The bell may ring for that wait.
  io_->start(transfer);
  for (;;) {
    std::vector<Completion> ended;
    if (const auto waited = io_->wait(ended, std::nullopt); !waited) {
      failure_ = waited.error();
      return EIO;
    }
    std::optional<int> result;
    for (const Completion& completion : ended)
      if (completion.id == transfer.id)
        result = completion.error;
      else
        ended_meanwhile_.push_back(completion);
    if (result) {
      if (*result != 0) stats_.transfer_failed(*result);
      return *result;
    }
  }
}

}  // namespace spillway
