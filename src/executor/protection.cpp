#include "executor/protection.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "executor/machine.h"

namespace spillway {
namespace {

// Long enough for a thread to finish the instruction that it faulted in, even while others run small kernels.
constexpr std::uint64_t kStaleAfter = 16;

// A stream that has run no kernel while others ran so many will not soon.
constexpr std::uint64_t kForgottenAfter = 256;

void pin(PageTable& table, std::span<const BlockRange> blocks) {
  for (const BlockRange& range : blocks)
    for (BlockId block = range.first; block < range.end(); ++block.value) table.pin(block);
}

}  // namespace

bool Protection::grant(StreamId stream, std::vector<BlockRange> blocks) {
  Bytes bytes;
  for (const BlockRange& range : blocks)
    for (BlockId block = range.first; block < range.end(); ++block.value) bytes += table_.bytes(block);
  if (granted_ + bytes > table_.capacity(Tier::device)) return false;
  pin(table_, blocks);
  granted_ += bytes;
  grants_.push_back({stream, std::move(blocks), bytes});
  return true;
}

void Protection::revoke(StreamId stream) {
  if (const auto grant = std::ranges::find(grants_, stream, &Grant::stream); grant != grants_.end()) {
    give_back(*grant);
    grants_.erase(grant);
  }
  if (const auto window = std::ranges::find(windows_, stream, &Window::stream); window != windows_.end()) close(window);
  ++revocations_;
  for (Expectation& expected : expectations_)
    if (expected.came_at + kForgottenAfter <= revocations_) forget(expected);
  for (auto other = windows_.begin(); other != windows_.end() && other->fault_at + kStaleAfter <= revocations_;)
    other = other->waits ? std::next(other) : close(other);
}

std::deque<Protection::Window>::iterator Protection::close(const std::deque<Window>::iterator& window) {
  while (!window->blocks.empty()) unpin_oldest(*window);
  return windows_.erase(window);
}

void Protection::waits(StreamId stream) {
  if (const auto window = std::ranges::find(windows_, stream, &Window::stream); window != windows_.end())
    window->waits = true;
}

void Protection::unpin(std::span<const BlockRange> blocks) {
  for (const BlockRange& range : blocks)
    for (BlockId block = range.first; block < range.end(); ++block.value) table_.unpin(block);
}

void Protection::give_back(const Grant& grant) {
  unpin(grant.blocks);
  granted_ -= grant.bytes;
}

Protection::Expectation& Protection::expectation(StreamId stream) {
  const auto known = std::ranges::find(expectations_, stream, &Expectation::stream);
  return known != expectations_.end() ? *known : expectations_.emplace_back(stream);
}

void Protection::came(StreamId stream, bool anew) {
  expectation(stream).came_at = revocations_;
  auto& kernels = expectation(stream).kernels;
  while (!kernels.empty()) {
    unpin(kernels.front());
    kernels.pop_front();
    if (!anew) return;
  }
}

// Their places stay: if the stream goes on after all, the next one to come is still the first.
void Protection::forget(Expectation& expected) {
  expected.came_at = revocations_;
  for (std::vector<BlockRange>& kernel : expected.kernels) {
    unpin(kernel);
    kernel.clear();
  }
}

void Protection::expect(StreamId stream, std::vector<BlockRange> blocks) {
  pin(table_, blocks);
  expectation(stream).kernels.push_back(std::move(blocks));
}

void Protection::faulted_in(StreamId stream, BlockId block) {
  if (stream == kNobody) return;
  auto window = std::ranges::find(windows_, stream, &Window::stream);
  if (window == windows_.end()) {
    windows_.push_back({.stream = stream, .blocks = {}});
  } else if (window != windows_.end() - 1) {
    Window recent = std::move(*window);
    windows_.erase(window);
    windows_.push_back(std::move(recent));
  }
  Window& mine = windows_.back();
  mine.fault_at = revocations_;
  mine.waits = false;
  // A signal may end a thread's wait, and then it faults on the same block again.
  if (std::erase(mine.blocks, block) == 0) table_.pin(block);
  mine.blocks.push_back(block);
  if (mine.blocks.size() > window_blocks_) unpin_oldest(mine);
}

void Protection::unpin_oldest(Window& window) {
  table_.unpin(window.blocks.front());
  window.blocks.pop_front();
}

bool Protection::relax(StreamId stream) {
  // What is only expected first, and of that what is expected last.
  for (Expectation& expected : expectations_)
    for (auto kernel = expected.kernels.rbegin(); kernel != expected.kernels.rend(); ++kernel) {
      if (kernel->empty()) continue;
      unpin(*kernel);
      kernel->clear();  // Its place stays, see forget().
      return true;
    }
  // Somebody else's window first: with a budget of a whole window for each thread, only threads that stopped lose it.
  for (auto window = windows_.begin(); window != windows_.end(); ++window) {
    if (window->stream == stream) continue;
    unpin_oldest(*window);
    if (window->blocks.empty()) windows_.erase(window);
    return true;
  }
  for (auto grant = grants_.begin(); grant != grants_.end(); ++grant) {
    if (grant->stream == stream) continue;
    give_back(*grant);
    grants_.erase(grant);
    return true;
  }
  for (Window& window : windows_) {
    if (window.blocks.size() <= 1) continue;
    unpin_oldest(window);
    return true;
  }
  if (grants_.empty()) return false;
  give_back(grants_.front());
  grants_.erase(grants_.begin());
  return true;
}

}  // namespace spillway
