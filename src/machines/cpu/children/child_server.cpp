#include "machines/cpu/children/child_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/files.h"

// See Note [Forked children].
namespace spillway {
namespace {

constexpr ForkGate::Patience kUntilSnapshot{10'000}, kUntilForked{10'000};
constexpr std::uint64_t kKeptBetweenLooks = 32;

std::byte* part_of(std::byte* address) {
  return address - reinterpret_cast<std::uintptr_t>(address) % ChildServer::kPartBytes;
}

}  // namespace

ChildServer::ChildServer(Surroundings machine, KeptBlocks::Port port, ForkedChildren children, MemoryRange buffers)
    : machine_(machine),
      start_(port.start),
      children_(std::move(children)),
      buffers_(std::move(buffers)),
      kept_(machine_.range.blocks(), buffers_.begin(), machine_.range.blocks(), std::move(port)) {
  CHECK(buffers_.blocks() >= kBufferBlocks);
}

std::optional<std::uint32_t> ChildServer::begin_fork(UniqueFd socket) {
  const ForkGate::Ticket ticket = gate_.begin();
  machine_.inbox.forking(ticket, std::move(socket));
  if (!gate_.wait_for_snapshot(kUntilSnapshot)) return std::nullopt;
  return could_want_.load(std::memory_order_acquire);
}

// Only behind a closed gate does the run loop stand still, and with it what it knows of the children.
bool ChildServer::enter_child() {
  if (!gate_.is_closed()) return false;
  children_.abandon();
  return true;
}

void ChildServer::take_snapshot(ForkGate::Ticket fork, UniqueFd socket) {
  if (!gate_.is_wanted(fork)) return;
  drop_ended();
  has_forked_ = true;
  const KeptBlocks::Taken taken = kept_.take();
  if (!children_.expect(std::move(socket), taken.snapshot)) {
    let_go(taken.snapshot);
    return gate_.refuse(fork);
  }
  is_serving_.store(true, std::memory_order_release);
  could_want_.store(taken.could_want, std::memory_order_release);
  gate_.taken_until_over(fork, kUntilForked);
}

void ChildServer::collect() {
  if (children_.empty()) return;
  children_.collect([&](SnapshotId snapshot) { kept_.hold(snapshot); },
                    [&](ChildId child, std::byte* address) { serve({child, address}); },
                    [&](SnapshotId snapshot) { let_go(snapshot); });
  if (kept_.kept() - kept_at_look_ < kKeptBetweenLooks) return;
  kept_at_look_ = kept_.kept();
  drop_ended();
}

void ChildServer::drop_ended() {
  children_.drop_ended([&](SnapshotId snapshot) { let_go(snapshot); });
}

void ChildServer::let_go(SnapshotId snapshot) {
  kept_.drop(snapshot);
  is_serving_.store(kept_.is_needed(), std::memory_order_release);
}

void ChildServer::end(const ForkedChildren::Child& child, std::string_view why) {
  kill_process(child.process);
  const std::string sentence = fmt::format("a forked process has been ended: {}", why);
  tell_later(fmt::format("spillway: {}\n", sentence));
  if (machine_.on_child_ended) machine_.on_child_ended(sentence);
}

void ChildServer::serve(const Fault& fault) {
  const ForkedChildren::Child* child = children_.find(fault.child);
  if (child == nullptr) return;  // It has ended.
  const BlockId id = block_of(fault);
  kept_.keep_pieces(id);
  const KeptBlocks::Seen seen = kept_.find(child->snapshot, id);
  using Where = KeptBlocks::Seen::Where;
  if (seen.where == Where::lost)
    return end(*child,
               "it wants a tensor as it was when the process was forked, and that could not be kept: the SSD had "
               "no space (give more with --ssd-capacity, free some, or fork fewer processes) or failed, or the "
               "parent held the tensor's pages (direct I/O)");
  if (seen.where == Where::nowhere) return give(*child, fault.address, nullptr);
  if (seen.place.bytes == nullptr) return start_read({fault, seen.place.slot});
  give(*child, fault.address, seen.place.bytes + (part_of(fault.address) - machine_.range.block(id.value)));
}

// Its part has these bytes; null: zeroes.
void ChildServer::give(const ForkedChildren::Child& child, std::byte* address, const std::byte* bytes) {
  std::byte* part = part_of(address);
  const auto map = [&](std::byte* to, std::size_t size) {
    return bytes == nullptr ? child.faults.zero(to, size) : child.faults.copy(to, bytes + (to - part), size);
  };
  int error = map(part, kPartBytes);
  // Some of it is there, or is no tensor's memory any more: what the child has done with it.
  if (error != 0 && error != ESRCH) error = map(page_of(address), kPageBytes);
  if (error == 0 || error == EEXIST)
    child.faults.wake(part, kPartBytes);
  else if (error != ESRCH)  // It has ended, or runs another program.
    end(child, fmt::format("a tensor of its parent cannot be copied for it: {}", errno_text(error)));
}

bool ChildServer::may_read() const {
  return std::ranges::any_of(reads_, [](const auto& each) { return !each.has_value(); });
}

void ChildServer::start_read(const Read& read) {
  if (!may_read()) return waiting_.push_back(read.fault);
  std::uint32_t number = 0;
  while (reads_[number]) ++number;
  reads_[number] = read;
  const std::byte* block = machine_.range.block(block_of(read.fault).value);
  const auto from = static_cast<std::uint64_t>(part_of(read.fault.address) - block);
  start_({.id = machine_.range.blocks() + KeptBlocks::kMostWrites + number,
          .write = false,
          .memory = buffer_of(number),
          .offset = read.slot * kBlockBytes.value + from,
          .bytes = kPartBytes});
}

void ChildServer::slot_is_taken(std::uint32_t slot) {
  for (auto& read : reads_)
    if (read && read->slot == slot) read->is_stale = true;
}

void ChildServer::ended(const Completion& completion) {
  CHECK(completion.id - machine_.range.blocks() < kMostTransfers);
  const std::uint32_t number = completion.id - machine_.range.blocks();
  if (completion.error != 0) machine_.stats.transfer_failed(completion.error);
  if (number < KeptBlocks::kMostWrites) {
    if (completion.error == 0) machine_.stats.wrote(kBlockBytes);
    kept_.ended(number, completion.error);
    is_serving_.store(kept_.is_needed(), std::memory_order_release);
    return;
  }
  finish_read(number - KeptBlocks::kMostWrites, completion.error);
  while (!waiting_.empty() && may_read()) {
    const Fault next = waiting_.front();
    waiting_.pop_front();
    serve(next);
  }
}

void ChildServer::finish_read(std::uint32_t number, int error) {
  CHECK(reads_[number].has_value());
  const Read read = *std::exchange(reads_[number], std::nullopt);
  const ForkedChildren::Child* child = children_.find(read.fault.child);
  if (child == nullptr) return;
  const KeptBlocks::Seen seen = kept_.find(child->snapshot, block_of(read.fault));
  const bool is_still_there = !read.is_stale && seen.where == KeptBlocks::Seen::Where::there &&
                              seen.place.bytes == nullptr && seen.place.slot == read.slot;
  if (!is_still_there) return serve(read.fault);
  if (error != 0)
    return end(*child, fmt::format("a tensor of its parent cannot be copied for it: {}", errno_text(error)));
  give(*child, read.fault.address, buffer_of(number));
}

std::size_t ChildServer::under_way() const {
  return kept_.under_way() +
         static_cast<std::size_t>(std::ranges::count_if(reads_, [](const auto& each) { return each.has_value(); }));
}

}  // namespace spillway
