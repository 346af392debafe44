#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "pages/page.h"
#include "trace/text_of.h"

namespace spillway {
namespace {

constexpr int kProcess = 1;

std::string as_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Microseconds, to the nanosecond.
std::string micros(Nanos time) { return fmt::format("{}.{:03}", time.value / 1000, time.value % 1000); }

// The events of one timeline, one a line.
class Events {
 public:
  explicit Events(const RunTimeline& timeline) : timeline_(timeline), uses_of_(timeline.tensors.size()) {
    for (const PlayedKernel& kernel : timeline.kernels)
      for (const auto* tensors : {&kernel.reads, &kernel.writes})
        for (const TensorId tensor : *tensors) uses_of_[tensor.value].push_back(&kernel);
    for (auto& uses : uses_of_) std::ranges::stable_sort(uses, {}, &PlayedKernel::start);
  }

  std::string text() {
    name("process_name", 0, fmt::format("{}: {}", timeline_.trace_name, heading_of(timeline_)));
    find_threads();
    for (const PlayedKernel& one : timeline_.kernels) kernel(one);
    for (std::size_t at = 0; at < timeline_.transfers.size(); ++at) transfer(timeline_.transfers[at], at);
    for (const TierLevel& one : timeline_.levels)
      for (const Tier tier : kTiers)
        if (timeline_.peak[tier] > Bytes{})
          event(fmt::format(R"("ph":"C","name":"memory on the {}","ts":{},"args":{{"bytes":{}}})", to_text(tier),
                            micros(one.at), one.bytes[tier].value));
    for (const PlayedMark& one : timeline_.marks)
      event(
          fmt::format(R"("ph":"i","s":"p","name":{},"cat":"mark","tid":0,"ts":{})", as_json(one.text), micros(one.at)));
    return std::string(kTraceEventsBegin) + out_ + "\n]}\n";
  }

 private:
  void event(const std::string& members) {
    fmt::format_to(std::back_inserter(out_), "{}\n{{\"pid\":{},{}}}", out_.empty() ? "" : ",", kProcess, members);
  }
  void name(std::string_view what, int track, std::string_view text) {
    event(fmt::format(R"("ph":"M","name":"{}","tid":{},"args":{{"name":{}}})", what, track, as_json(text)));
  }
  // The one of that name, which is made where there was none.
  int track(const std::string& text) {
    const auto [place, is_new] = tracks_.emplace(text, static_cast<int>(tracks_.size()) + 1);
    if (!is_new) return place->second;
    name("thread_name", place->second, text);
    event(fmt::format(R"("ph":"M","name":"thread_sort_index","tid":{},"args":{{"sort_index":{}}})", place->second,
                      place->second));
    return place->second;
  }
  // Tracks of kernels stand above those of links. Kernels of one thread never overlap.
  void find_threads() {
    std::map<std::uint32_t, bool> waits;
    for (const PlayedKernel& one : timeline_.kernels) waits[one.thread] |= one.stall != Stall::none;
    for (const auto& [thread, any] : waits) {
      const std::string device = waits.size() == 1 ? "device" : fmt::format("thread {}", thread);
      threads_[thread] = {track(device + ": kernels"), any ? track(device + ": waits") : 0};
    }
  }
  void slice(int track, std::string_view text, std::string_view kind, Nanos begin, Nanos end, const std::string& args) {
    event(fmt::format(R"("ph":"X","name":{},"cat":"{}","tid":{},"ts":{},"dur":{},"args":{{{}}})", as_json(text), kind,
                      track, micros(begin), micros(end - begin), args));
  }

  void kernel(const PlayedKernel& one) {
    const std::string text = one.is_replay ? one.name + " (again)" : one.name;
    const Tracks& tracks = threads_[one.thread];
    const std::string place = one.kernel == kNoKernel ? "" : fmt::format(R"("kernel":{},)", one.kernel.value);
    slice(tracks.kernels, text, to_text(one.phase), one.start, one.end,
          fmt::format(R"({}"waited_us":{})", place, micros(one.wait())));
    if (one.stall != Stall::none)
      slice(tracks.waits, fmt::format("{}: {}", to_text(one.stall), text), "wait", one.ready, one.start,
            fmt::format(R"("cause":{})", as_json(one.cause)));
  }

  void transfer(const PlayedTransfer& one, std::size_t id) {
    const int link = track(link_text(one));
    const std::string text = one.tensor ? timeline_.tensors[one.tensor->value].name : std::string("(unknown)");
    const std::string args =
        fmt::format(R"("bytes":{},"queued_us":{},"urgency":"{}","copied":{},"cancelled":{})", one.bytes.value,
                    micros(one.begin - one.queued), to_text(one.urgency), one.copied, one.cancelled);
    if (one.end == one.begin) {  // nothing was copied
      event(fmt::format(R"("ph":"i","s":"t","name":{},"cat":"transfer","tid":{},"ts":{},"args":{{{}}})", as_json(text),
                        link, micros(one.begin), args));
      return;
    }
    slice(link, text, "transfer", one.begin, one.end, args);
    if (one.to != Tier::device || !one.tensor || one.cancelled || one.goes_on) return;
    const std::vector<const PlayedKernel*>& uses = uses_of_[one.tensor->value];
    const auto next = std::ranges::lower_bound(uses, one.end, {}, &PlayedKernel::start);
    if (next == uses.end()) return;
    event(fmt::format(R"("ph":"s","name":"brings","cat":"brings","id":{},"tid":{},"ts":{})", id, link,
                      micros(one.begin)));
    event(fmt::format(R"("ph":"f","bp":"e","name":"brings","cat":"brings","id":{},"tid":{},"ts":{})", id,
                      threads_[(*next)->thread].kernels, micros((*next)->start)));
  }

  // Of those on one track none overlaps another.
  static std::string link_text(const PlayedTransfer& one) {
    return fmt::format("{} to {}{}", to_text(one.from), to_text(one.to),
                       one.urgency == Urgency::plan    ? ""
                       : one.urgency == Urgency::fault ? ": page faults"
                                                       : ": needed at once");
  }

  struct Tracks {
    int kernels = 0, waits = 0;
  };
  const RunTimeline& timeline_;
  std::vector<std::vector<const PlayedKernel*>> uses_of_;  // by tensor, by start
  std::map<std::string, int> tracks_;
  std::map<std::uint32_t, Tracks> threads_;
  std::string out_;
};

}  // namespace

std::string trace_events_of(const RunTimeline& timeline) { return Events(timeline).text(); }

}  // namespace spillway
