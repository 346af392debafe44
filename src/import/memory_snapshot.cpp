#include "import/memory_snapshot.h"

#include <fmt/format.h>

#include <optional>
#include <unordered_map>
#include <utility>

#include "import/assembly.h"
#include "import/pickle.h"

namespace spillway {
namespace {

constexpr std::int64_t kMostTime = 4'000'000'000'000'000;  // microseconds; as nanoseconds they fit 64 bits
constexpr std::int64_t kMostSnapshotBytes = std::int64_t{1} << 50;
constexpr std::string_view kRecord =
    "call torch.cuda.memory._record_memory_history() before the iteration and _dump_snapshot(FILE) after it";

class SnapshotReader {
 public:
  SnapshotReader(const Pickle& pickle, const std::string& where) : pickle_(pickle), where_(where) {}

  Result<std::vector<KinetoMemory>> read() {
    const auto traces = pickle_.find(pickle_.root(), "device_traces");
    const auto devices = traces ? pickle_.items(*traces) : std::nullopt;
    if (!devices) return fail(Errc::bad_input, fmt::format("{}: it has no list 'device_traces'; {}", where_, kRecord));
    for (device_ = 0; device_ < devices->size(); ++device_) {
      const auto events = pickle_.items((*devices)[device_]);
      if (!events) return fail(Errc::bad_input, fmt::format("{}: device_traces[{}] is no list", where_, device_));
      for (event_ = 0; event_ < events->size(); ++event_) TRY_VOID(read_event((*events)[event_]));
      if (++size_ > kMostImported) return wrong("it has more events than we read");
    }
    if (memory_.empty())
      return fail(Errc::bad_input, fmt::format("{}: nothing is allocated in it; {}", where_, kRecord));
    return std::move(memory_);
  }

 private:
  std::unexpected<Error> wrong(std::string_view what) const {
    return fail(Errc::bad_input,
                fmt::format("{}: device_traces[{}][{}]: {}; {}", where_, device_, event_, what, kRecord));
  }

  Result<> read_event(Pickle::Value event) {
    if (++size_ > kMostImported) return wrong("it has more events than we read");
    const auto action_value = pickle_.find(event, "action");
    const auto action = action_value ? pickle_.text(*action_value) : std::nullopt;
    if (!action) return wrong("'action' is missing or no text");
    // The allocator may keep freed memory back for other streams (free_completed), and segments are its own affair.
    const bool given = *action == "alloc";
    if (!given && *action != "free_requested") return {};
    TRY(const std::int64_t address, number_of(event, "addr"));
    TRY(const std::int64_t bytes, number_of(event, "size"));
    TRY(const std::int64_t at, number_of(event, "time_us"));
    if (bytes < 0 || bytes > kMostSnapshotBytes) return wrong("'size' is not from 0 to 2^50");
    if (at < 0 || at > kMostTime) return wrong(fmt::format("'time_us' is not from 0 to {}", kMostTime));
    if (bytes == 0) return {};
    memory_.push_back({.address = static_cast<std::uint64_t>(address),
                       .bytes = given ? bytes : -bytes,
                       .at = at * 1000,
                       .device = static_cast<std::int64_t>(device_)});
    if (given) memory_.back().made_by = line_of(event);
    return {};
  }

  Result<std::int64_t> number_of(Pickle::Value event, std::string_view key) const {
    const auto value = pickle_.find(event, key);
    const auto number = value ? pickle_.number(*value) : std::nullopt;
    if (!number) return wrong(fmt::format("'{}' is missing or no whole number", key));
    return *number;
  }

  // "train.py:42 forward": of the calls around it the innermost that is not PyTorch's own. Snapshots share lists of
  // calls.
  std::string line_of(Pickle::Value event) {
    const auto list = pickle_.find(event, "frames");
    const auto frames = list ? pickle_.items(*list) : std::nullopt;
    if (!frames) return {};
    const auto [place, is_new] = lines_.try_emplace(*list);
    if (!is_new) return place->second;
    for (const Pickle::Value frame : *frames) {
      const auto file_value = pickle_.find(frame, "filename"), name_value = pickle_.find(frame, "name");
      const auto file = file_value ? pickle_.text(*file_value) : std::nullopt;
      const auto name = name_value ? pickle_.text(*name_value) : std::nullopt;
      const auto line = pickle_.find(frame, "line");
      if (!file || !name || !line || !file->ends_with(".py") || file->contains("/torch/")) continue;
      place->second =
          fmt::format("{}:{} {}", file->substr(file->rfind('/') + 1), pickle_.number(*line).value_or(0), *name);
      break;
    }
    return place->second;
  }

  const Pickle& pickle_;
  const std::string& where_;
  std::size_t device_ = 0, event_ = 0, size_ = 0;
  std::vector<KinetoMemory> memory_;
  std::unordered_map<Pickle::Value, std::string> lines_;  // by the list of calls
};

}  // namespace

Result<std::vector<KinetoMemory>> parse_memory_snapshot(std::string_view pickle, const std::string& where) {
  const std::string begin = "cannot import " + where;
  TRY(const Pickle parsed, parse_pickle(pickle, begin));
  return SnapshotReader(parsed, begin).read();
}

Kineto with_snapshot(Kineto kineto, std::vector<KinetoMemory> memory, std::string snapshot) {
  for (KinetoMemory& one : memory) one.at -= kineto.base;
  kineto.memory = std::move(memory);
  kineto.snapshot = std::move(snapshot);
  return kineto;
}

}  // namespace spillway
