#include "session/disk_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/files.h"
#include "base/text.h"

namespace spillway {
namespace {

// Between two looks; if more has passed, we were stopped ourselves.
constexpr Nanos kMostAtOnce{2'000'000'000};

constexpr Nanos kLeastForManyCalls{5'000'000'000};

// 'D', 'S', 'T' for stopped, ...; 0 if there is no such thread: it has ended, or its process runs another program.
char state_of(std::int64_t process, std::int64_t thread) {
  const auto stat = read_file(fmt::format("/proc/{}/task/{}/stat", process, thread), 4_KiB);
  const std::size_t at = stat ? stat->rfind(") ") : std::string::npos;
  return at != std::string::npos && at + 2 < stat->size() ? (*stat)[at + 2] : '\0';
}

bool has_ended(char state) { return state == '\0' || state == 'Z' || state == 'X'; }

// What is said of each kind of wait; of which disk, for how long.
struct Sentence {
  std::array<char, kPathBytes> SessionConfig::* disk;
  const char* text;
};
constexpr std::array kSentences{
    // in the order of WaitsFor
    Sentence{&SessionConfig::ssd_directory,
             "{} has not answered a read of a block for {}: tensors that are on their way cannot be had"},
    Sentence{&SessionConfig::ssd_directory,
             "{} has not answered a write of a block for {}: tensors that are on their way cannot be had"},
    Sentence{&SessionConfig::ssd_directory,
             "{} has not answered for {} that it was asked for space: no tensor can be made"},
    Sentence{&SessionConfig::record_path,
             "what --record writes beside {} has not been taken for {}: the script waits for it"},
    Sentence{&SessionConfig::journal_path,
             "{} has not been taken for {}: the script has ended, and its process cannot"}};

}  // namespace

Nanos limit_of_many_calls(Nanos io_timeout) {
  return io_timeout == Nanos{} ? Nanos{} : std::max(io_timeout, kLeastForManyCalls);
}

std::string DiskWatch::overdue(Nanos now) {
  const std::int64_t process = session_.state.owner_pid;
  const Nanos limit{session_.config.io_timeout_ns};
  const Nanos passed = std::min(excess(now, std::exchange(last_, now)), kMostAtOnce);
  std::vector<Waiting> waiting;
  Waiting oldest;  // of those that have waited too long
  for (const auto& slot : session_.state.disk_waits) {
    const std::uint64_t wait = slot.load(std::memory_order_relaxed);
    const WaitsFor what = what_of(wait);
    const char thread = wait == 0 ? '\0' : state_of(process, thread_of(wait));
    // The script does not wait for its journal, but its process cannot end before.
    const bool nobody_waits = what == WaitsFor::journal && !has_ended(state_of(process, process));
    if (has_ended(thread) || nobody_waits || what > WaitsFor::journal) continue;
    const auto known = std::ranges::find(waiting_, wait, &Waiting::wait);
    Waiting& one = waiting.emplace_back(known == waiting_.end() ? Waiting{wait, {}} : *known);
    if (known != waiting_.end() && thread != 'T' && thread != 't') one.waited += passed;
    const bool is_late = one.waited >= (what == WaitsFor::record ? limit_of_many_calls(limit) : limit);
    if (is_late && one.waited > oldest.waited) oldest = one;
  }
  waiting_ = std::move(waiting);
  if (oldest.wait == 0 || limit == Nanos{}) return {};
  const Sentence& sentence = kSentences[static_cast<std::size_t>(what_of(oldest.wait))];
  return fmt::format(fmt::runtime(sentence.text), (session_.config.*sentence.disk).data(), to_text(oldest.waited)) +
         ", so the run has been ended; check the disk (its messages are in dmesg), or allow more time with "
         "--io-timeout";
}

}  // namespace spillway
