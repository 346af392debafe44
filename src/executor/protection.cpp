#include "executor/protection.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace spillway {
namespace {

// Long enough for a thread to finish the instruction that it faulted in, even while others run small kernels.
constexpr std::uint64_t kStaleAfter = 16;

// A stream that has run no kernel while others ran so many will not soon.
constexpr std::uint64_t kForgottenAfter = 256;

template <class F>
void for_each_block(std::span<const BlockRange> blocks, F&& call) {
  for (const BlockRange& range : blocks)
    for (BlockId block = range.first; block < range.end(); ++block.value) call(block);
}

}  // namespace

bool Protection::grant(LaunchId launch, const std::vector<BlockRange>& blocks) {
  CHECK(std::ranges::find(grants_, launch, &Grant::launch) == grants_.end());
  Bytes more;
  for_each_block(blocks, [&](BlockId block) {
    if (grants_of_[block.value] == 0) more += table_.bytes(block);
  });
  if (granted_ + more > table_.capacity(Tier::device)) return false;
  for_each_block(blocks, [&](BlockId block) {
    ++grants_of_[block.value];
    table_.pin(block);
  });
  granted_ += more;
  grants_.push_back({launch, blocks});
  return true;
}

Bytes Protection::shortfall(const std::vector<BlockRange>& blocks) const {
  Bytes all;
  for_each_block(blocks, [&](BlockId block) { all += table_.bytes(block); });
  return excess(all, table_.capacity(Tier::device));
}

void Protection::revoke(LaunchId launch) {
  if (const auto grant = std::ranges::find(grants_, launch, &Grant::launch); grant != grants_.end()) give_back(grant);
  close_of(launch.stream);
  ++revocations_;
  for (Expectation& expected : expectations_)
    if (expected.came_at + kForgottenAfter <= revocations_) forget(expected);
  for (auto other = windows_.begin(); other != windows_.end() && other->fault_at + kStaleAfter <= revocations_;)
    other = other->waits ? std::next(other) : close(other);
}

void Protection::begins_anew(StreamId stream) {
  close_of(stream);
  claimer_ = stream;
}

void Protection::close_of(StreamId stream) {
  if (const auto window = std::ranges::find(windows_, stream, &Window::stream); window != windows_.end()) close(window);
}

std::deque<Protection::Window>::iterator Protection::close(const std::deque<Window>::iterator& window) {
  unpin(window->runs);
  return windows_.erase(window);
}

void Protection::waits(StreamId stream) {
  if (const auto window = std::ranges::find(windows_, stream, &Window::stream); window != windows_.end())
    window->waits = true;
}

void Protection::refused(BlockId block) {
  const auto window = std::ranges::find(windows_, claimer_, &Window::stream);
  const bool waited = window != windows_.end() && window->waits;
  faulted_in(claimer_, {block, 1});
  if (waited) waits(claimer_);
}

void Protection::unpin(std::span<const BlockRange> blocks) {
  for_each_block(blocks, [&](BlockId block) { table_.unpin(block); });
}

void Protection::give_back(LaunchId launch) {
  const auto grant = std::ranges::find(grants_, launch, &Grant::launch);
  if (grant != grants_.end()) give_back(grant);
}

void Protection::give_back(std::vector<Grant>::iterator grant) {
  take_back(grant->blocks);
  grants_.erase(grant);
}

void Protection::take_back(std::span<const BlockRange> blocks) {
  for_each_block(blocks, [&](BlockId block) {
    CHECK(grants_of_[block.value] > 0);
    if (--grants_of_[block.value] == 0) granted_ -= table_.bytes(block);
    table_.unpin(block);
  });
}

void Protection::give_back(LaunchId launch, BlockRange blocks) {
  const auto grant = std::ranges::find(grants_, launch, &Grant::launch);
  if (grant == grants_.end()) return;
  std::vector<BlockRange> kept, given;
  for (const BlockRange& range : grant->blocks) {
    const BlockId begin = std::clamp(blocks.first, range.first, range.end());
    const BlockId end = std::clamp(blocks.end(), begin, range.end());
    const std::pair<BlockId, BlockId> parts[]{{range.first, begin}, {begin, end}, {end, range.end()}};
    for (const auto& [from, to] : parts)
      if (from < to) (&from == &parts[1].first ? given : kept).push_back({from, to.value - from.value});
  }
  take_back(given);
  grant->blocks = std::move(kept);
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
  for_each_block(blocks, [&](BlockId block) { table_.pin(block); });
  expectation(stream).kernels.push_back(std::move(blocks));
}

void Protection::faulted_in(StreamId stream, BlockRange blocks) {
  if (stream == kNobody || blocks.count == 0) return;
  auto window = std::ranges::find(windows_, stream, &Window::stream);
  if (window == windows_.end()) {
    windows_.push_back({.stream = stream});
  } else if (window != windows_.end() - 1) {
    Window recent = std::move(*window);
    windows_.erase(window);
    windows_.push_back(std::move(recent));
  }
  Window& mine = windows_.back();
  mine.fault_at = revocations_;
  mine.waits = false;
  const std::uint32_t kept = std::min(blocks.count, options_.window_blocks);
  const BlockId first{blocks.end().value - kept};
  const auto is_apart = [&](const BlockRange& run) { return run.end() <= first || blocks.end() <= run.first; };
  const bool all_are_new = std::ranges::all_of(mine.runs, is_apart);
  for (BlockId block = first; block < blocks.end(); ++block.value) {
    // A signal may end a thread's wait, and then it faults on the same block again.
    if (all_are_new || !take_out(mine, block)) table_.pin(block);
    if (!mine.runs.empty() && mine.runs.back().end() == block)
      ++mine.runs.back().count;
    else
      mine.runs.push_back({block, 1});
    if (++mine.size > options_.window_blocks) unpin_oldest(mine);
  }
}

// It stays pinned. False if it is not there.
bool Protection::take_out(Window& window, BlockId block) {
  const auto run = std::ranges::find_if(window.runs, [&](const BlockRange& one) { return one.contains(block); });
  if (run == window.runs.end()) return false;
  --window.size;
  const BlockRange after{{block.value + 1}, run->end().value - block.value - 1};
  run->count = block.value - run->first.value;
  const auto next = run->count == 0 ? window.runs.erase(run) : std::next(run);
  if (after.count > 0) window.runs.insert(next, after);
  return true;
}

void Protection::forget(BlockRange pieces) {
  for (Window& window : windows_)
    for (BlockId piece = pieces.first; piece < pieces.end(); ++piece.value)
      if (take_out(window, piece)) table_.unpin(piece);
  std::erase_if(windows_, [](const Window& window) { return window.size == 0; });
}

void Protection::unpin_oldest(Window& window) {
  CHECK(window.size > 0);
  BlockRange& oldest = window.runs.front();
  table_.unpin(oldest.first);
  ++oldest.first.value;
  if (--oldest.count == 0) window.runs.erase(window.runs.begin());
  --window.size;
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
    if (window->size == 0) windows_.erase(window);
    return true;
  }
  const auto of_others = [&](const Grant& grant) { return grant.launch.stream != stream; };
  const auto grant = std::ranges::find_if(grants_, of_others);
  if (grant != grants_.end() && !options_.grants_are_firm) {
    give_back(grant);
    return true;
  }
  const bool has_grant = !grants_.empty() && !options_.grants_are_firm;
  if (has_grant && options_.waits_for_all) {
    give_back(grants_.begin());
    return true;
  }
  for (Window& window : windows_) {
    if (window.size <= 1) continue;
    unpin_oldest(window);
    return true;
  }
  if (has_grant) give_back(grants_.begin());
  return has_grant;
}

void Protection::check_invariants() const {
  std::vector<std::uint32_t> granted(table_.block_count());
  for (const Grant& grant : grants_) for_each_block(grant.blocks, [&](BlockId block) { ++granted[block.value]; });
  CHECK(granted == grants_of_);
  Bytes sum;
  for (BlockId block{0}; block.value < granted.size(); ++block.value)
    if (granted[block.value] > 0) sum += table_.bytes(block);
  CHECK(sum == granted_ && granted_ <= table_.capacity(Tier::device));
  std::vector<std::uint32_t> pins = std::move(granted);
  for (const Window& window : windows_) {
    CHECK(window.size > 0 && window.size <= options_.window_blocks);
    CHECK(std::ranges::count(windows_, window.stream, &Window::stream) == 1);
    std::uint32_t size = 0;
    for_each_block(window.runs, [&](BlockId block) {
      ++size;
      CHECK(table_.contains({block, 1}));
      if (is_piece(block))
        CHECK(table_.pinned(block));
      else
        ++pins[block.value];
    });
    CHECK(size == window.size);
  }
  for (const Expectation& expected : expectations_)
    for (const std::vector<BlockRange>& kernel : expected.kernels)
      for_each_block(kernel, [&](BlockId block) { ++pins[block.value]; });
  for (BlockId block{0}; block.value < pins.size(); ++block.value)
    CHECK(table_.pinned(block) == (pins[block.value] > 0));
}

}  // namespace spillway
