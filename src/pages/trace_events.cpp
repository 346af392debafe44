#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text.h"
#include "pages/page.h"
#include "trace/text_of.h"

namespace spillway {
namespace {

constexpr int kProcess = 1, kKernels = 1, kWaits = 2, kFirstLink = 3;

std::string as_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Microseconds, to the nanosecond.
std::string micros(Nanos time) { return fmt::format("{}.{:03}", time.value / 1000, time.value % 1000); }

// The events of one timeline, one a line.
class Events {
 public:
  explicit Events(const RunTimeline& timeline) : timeline_(timeline) {}

  std::string text() {
    const std::string policy = timeline_.policy.empty() ? "with all memory it wants"
                                                        : fmt::format("{} on {}", timeline_.policy, timeline_.machine);
    name("process_name", 0, fmt::format("{}: {}", timeline_.trace_name, policy));
    track(kKernels, "device: kernels");
    if (std::ranges::any_of(timeline_.kernels, [](const PlayedKernel& one) { return one.stall != Stall::none; }))
      track(kWaits, "device: waits");
    for (const PlayedKernel& one : timeline_.kernels) kernel(one);
    for (std::size_t at = 0; at < timeline_.transfers.size(); ++at) transfer(timeline_.transfers[at], at);
    for (const TierLevel& one : timeline_.levels)
      for (const Tier tier : kTiers)
        if (timeline_.peak[tier] > Bytes{})
          event(fmt::format(R"("ph":"C","name":"memory on the {}","ts":{},"args":{{"bytes":{}}})", to_text(tier),
                            micros(one.at), one.bytes[tier].value));
    return R"({"displayTimeUnit":"ms","traceEvents":[)" + out_ + "\n]}\n";
  }

 private:
  void event(const std::string& members) {
    fmt::format_to(std::back_inserter(out_), "{}\n{{\"pid\":{},{}}}", out_.empty() ? "" : ",", kProcess, members);
  }
  void name(std::string_view what, int track, std::string_view text) {
    event(fmt::format(R"("ph":"M","name":"{}","tid":{},"args":{{"name":{}}})", what, track, as_json(text)));
  }
  void track(int track, std::string_view text) {
    name("thread_name", track, text);
    event(fmt::format(R"("ph":"M","name":"thread_sort_index","tid":{},"args":{{"sort_index":{}}})", track, track));
  }
  void slice(int track, std::string_view text, std::string_view kind, Nanos begin, Nanos end, const std::string& args) {
    event(fmt::format(R"("ph":"X","name":{},"cat":"{}","tid":{},"ts":{},"dur":{},"args":{{{}}})", as_json(text), kind,
                      track, micros(begin), micros(end - begin), args));
  }

  void kernel(const PlayedKernel& one) {
    const std::string text = one.is_replay ? one.name + " (again)" : one.name;
    slice(kKernels, text, to_text(one.phase), one.start, one.end,
          fmt::format(R"("kernel":{},"waited_us":{})", one.kernel.value, micros(one.wait())));
    if (one.stall != Stall::none)
      slice(kWaits, fmt::format("{}: {}", to_text(one.stall), text), "wait", one.ready, one.start,
            fmt::format(R"("cause":{})", as_json(one.cause)));
  }

  void transfer(const PlayedTransfer& one, std::size_t id) {
    const int link = link_track(one);
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
    const auto next =
        std::ranges::find_if(std::ranges::lower_bound(timeline_.kernels, one.end, {}, &PlayedKernel::start),
                             timeline_.kernels.end(), [&](const PlayedKernel& kernel) {
                               return std::ranges::find(kernel.reads, *one.tensor) != kernel.reads.end() ||
                                      std::ranges::find(kernel.writes, *one.tensor) != kernel.writes.end();
                             });
    if (next == timeline_.kernels.end()) return;
    event(fmt::format(R"("ph":"s","name":"brings","cat":"brings","id":{},"tid":{},"ts":{})", id, link,
                      micros(one.begin)));
    event(fmt::format(R"("ph":"f","bp":"e","name":"brings","cat":"brings","id":{},"tid":{},"ts":{})", id, kKernels,
                      micros(next->start)));
  }

  // Transfers on one of them never overlap.
  int link_track(const PlayedTransfer& one) {
    const std::string text = fmt::format("{} to {}{}", to_text(one.from), to_text(one.to),
                                         one.urgency == Urgency::plan    ? ""
                                         : one.urgency == Urgency::fault ? ": page faults"
                                                                         : ": needed at once");
    const auto found = std::ranges::find(links_, text);
    if (found != links_.end()) return kFirstLink + static_cast<int>(found - links_.begin());
    links_.push_back(text);
    const int added = kFirstLink + static_cast<int>(links_.size()) - 1;
    track(added, text);
    return added;
  }

  const RunTimeline& timeline_;
  std::vector<std::string> links_;
  std::string out_;
};

}  // namespace

std::string trace_events_of(const RunTimeline& timeline) { return Events(timeline).text(); }

}  // namespace spillway
