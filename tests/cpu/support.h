#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "machines/cpu/choose_eviction.h"
#include "machines/cpu/cpu_machine.h"
#include "machines/real/memory_range.h"

namespace spillway {

// g++ tells by the first two, clang by the third.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// Where there is time (./test --long) tests do more.
inline bool has_time() { return std::getenv("SPILLWAY_TEST_LONG") != nullptr; }
// How much random work a test does: sanitizers are slow.
inline unsigned effort() { return (kSanitized ? 1 : 2) * (has_time() ? 3 : 1); }

// A directory on a real disk; tests must not spill into a tmpfs.
inline std::string spill_directory() {
  const char* named = std::getenv("SPILLWAY_TEST_SSD");
  return named != nullptr ? named : "/var/tmp";
}

// The kernel's own count of pages that a range holds: what /proc/self/pagemap says, page by page. Zero pages that are
// only mapped, not owned, count as well.
std::uint64_t resident_bytes(const MemoryRange& range);

inline void PrintTo(EvictionMethod method, std::ostream* out) { *out << to_text(method); }

// Skips the test where page faults cannot be served, with the reason.
#define REQUIRE_PAGE_FAULTS()                                                                      \
  do {                                                                                             \
    if (auto tried = ::spillway::Userfault::open(); !tried) GTEST_SKIP() << tried.error().message; \
  } while (false)

// What a machine's transfers go through (around_io): an Io made with these arguments.
template <class Io, class... A>
auto around(A... arguments) {
  return [... arguments = std::move(arguments)](std::unique_ptr<BlockIo> io) -> std::unique_ptr<BlockIo> {
    return std::make_unique<Io>(std::move(io), arguments...);
  };
}

class AroundIo : public BlockIo {
 public:
  explicit AroundIo(std::unique_ptr<BlockIo> io) : io_(std::move(io)) {}
  void start(const Transfer& transfer) override { io_->start(transfer); }

 protected:
  std::unique_ptr<BlockIo> io_;
};

// Makes the transfers fail for which `fails` says so, after they have happened.
class FailingIo final : public AroundIo {
 public:
  using Fails = std::function<int(const Transfer&)>;  // 0 or an errno
  FailingIo(std::unique_ptr<BlockIo> io, Fails fails) : AroundIo(std::move(io)), fails_(std::move(fails)) {}

  void start(const Transfer& transfer) override {
    if (const int error = fails_(transfer); error != 0) errors_.push_back({transfer.id, error});
    io_->start(transfer);
  }
  Result<> wait(std::vector<Completion>& ended, std::optional<std::chrono::microseconds> timeout) override {
    const std::size_t before = ended.size();
    auto result = io_->wait(ended, timeout);
    for (std::size_t at = before; at < ended.size(); ++at)
      for (auto error = errors_.begin(); error != errors_.end(); ++error)
        if (error->id == ended[at].id) {
          ended[at].error = error->error;
          errors_.erase(error);
          break;
        }
    return result;
  }

 private:
  Fails fails_;
  std::vector<Completion> errors_;
};

// Holds back the ends of the transfers for which `which` says so.
class HoldingIo final : public AroundIo {
 public:
  struct Held {
    std::atomic<bool> on{false};
    std::atomic<std::size_t> count{0};  // of those that wait
  };
  using Which = std::function<bool(const Transfer&)>;
  HoldingIo(std::unique_ptr<BlockIo> io, Held& held, Which which)
      : AroundIo(std::move(io)), held_(held), which_(std::move(which)) {}

  void start(const Transfer& transfer) override {
    if (which_(transfer)) chosen_.insert(transfer.id);
    io_->start(transfer);
  }
  Result<> wait(std::vector<Completion>& ended, std::optional<std::chrono::microseconds> timeout) override {
    constexpr std::chrono::microseconds kTurn{1000};
    std::vector<Completion> new_ones;
    auto result = io_->wait(new_ones, late_.empty() ? timeout : std::min(timeout.value_or(kTurn), kTurn));
    const bool on = held_.on;
    for (const Completion& completion : new_ones)
      (chosen_.erase(completion.id) > 0 && on ? late_ : ended).push_back(completion);
    if (!on) {
      ended.insert(ended.end(), late_.begin(), late_.end());
      late_.clear();
    }
    held_.count = late_.size();
    return result;
  }

 private:
  Held& held_;
  Which which_;
  std::set<std::uint32_t> chosen_;
  std::vector<Completion> late_;
};

// Ends one transfer at a time, in the order in which they started, and tells when each starts and ends, on the run
// loop's thread.
class OneByOneIo final : public AroundIo {
 public:
  using Tell = std::function<void(bool write, bool ends)>;
  OneByOneIo(std::unique_ptr<BlockIo> io, Tell tell) : AroundIo(std::move(io)), tell_(std::move(tell)) {}

  void start(const Transfer& transfer) override {
    started_.push_back(transfer);
    tell_(transfer.write, false);
    io_->start(transfer);
  }
  Result<> wait(std::vector<Completion>& ended, std::optional<std::chrono::microseconds> timeout) override {
    auto result = io_->wait(held_, oldest() != held_.end() ? std::chrono::microseconds{0} : timeout);
    const auto found = oldest();
    if (found == held_.end()) return result;
    ended.push_back(*found);
    held_.erase(found);
    tell_(started_.front().write, true);
    started_.pop_front();
    return result;
  }

 private:
  std::vector<Completion>::iterator oldest() {
    if (started_.empty()) return held_.end();
    return std::ranges::find(held_, started_.front().id, &Completion::id);
  }

  Tell tell_;
  std::deque<Transfer> started_;
  std::vector<Completion> held_;
};

// A slow disk: each transfer's end is told some milliseconds late, in any order.
class SlowIo final : public AroundIo {
 public:
  SlowIo(std::unique_ptr<BlockIo> io, std::uint64_t seed) : AroundIo(std::move(io)), random_(seed) {}
  Result<> wait(std::vector<Completion>& ended, std::optional<std::chrono::microseconds> timeout) override {
    constexpr std::chrono::microseconds kTurn{1000};
    const std::size_t before = ended.size();
    auto result = io_->wait(late_, late_.empty() ? timeout : std::min(timeout.value_or(kTurn), kTurn));
    std::shuffle(late_.begin(), late_.end(), random_);
    while (!late_.empty() && random_() % 4 == 0) {
      ended.push_back(late_.back());
      late_.pop_back();
    }
    // Whoever waits for no bell and no time waits for an end.
    if (ended.size() == before && !late_.empty() && !timeout) return wait(ended, timeout);
    return result;
  }

 private:
  std::mt19937_64 random_;
  std::vector<Completion> late_;
};

// Bytes that tell blocks and versions apart.
void fill(std::byte* at, std::size_t bytes, std::uint64_t seed);
bool holds(const std::byte* at, std::size_t bytes, std::uint64_t seed);

}  // namespace spillway
