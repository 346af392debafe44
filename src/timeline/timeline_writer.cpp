#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/version.h"
#include "timeline/timeline_file.h"
#include "timeline/timeline_format.h"
#include "trace/compressed.h"
#include "trace/text_of.h"

namespace spillway {
namespace {

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string tiers(const PerTier<Bytes>& bytes) {
  return fmt::format("[{},{},{}]", bytes.device.value, bytes.host.value, bytes.ssd.value);
}

std::string ids(const std::vector<TensorId>& tensors) {
  std::vector<std::uint32_t> values;
  for (const TensorId tensor : tensors) values.push_back(tensor.value);
  return fmt::format("[{}]", fmt::join(values, ","));
}

const char* if_so(bool holds, const char* text) { return holds ? text : ""; }

}  // namespace

std::string to_json_lines(const RunTimeline& timeline) {
  std::string out;
  std::uint64_t lines = 0;
  const auto add = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
    out += '\n';
    ++lines;
  };
  const auto limit = [](const std::optional<Bytes>& most) { return most ? std::to_string(most->value) : "null"; };
  add(R"({{"format":"{}","version":{},"spillway":"{}","trace":{{"name":{},"hash":{}}},"policy":{},"machine":{},)"
      R"("steady":{},"iteration_ns":{},"ideal_ns":{},"capacity_bytes":[{},{},{}],"peak_bytes":{}}})",
      kTimelineFormat, kTimelineVersion, kVersion, json_text(timeline.trace_name), json_text(timeline.trace_hash),
      json_text(timeline.policy), json_text(timeline.machine), timeline.steady, timeline.iteration.value,
      timeline.ideal.value, limit(timeline.capacity.device), limit(timeline.capacity.host),
      limit(timeline.capacity.ssd), tiers(timeline.peak));
  for (std::size_t t = 0; t < timeline.tensors.size(); ++t) {
    const PlayedTensor& one = timeline.tensors[t];
    add(R"({{"tensor":{},"name":{},"bytes":{},"kind":"{}","at_start":{}}})", t, json_text(one.name), one.bytes.value,
        to_text(one.kind), tiers(one.at_start));
  }
  for (const PlayedKernel& one : timeline.kernels) {
    std::string stall;
    if (one.stall != Stall::none)
      stall = fmt::format(R"(,"stall":"{}","waited_for":{},"cause":{})", to_text(one.stall),
                          one.waited_for ? std::to_string(one.waited_for->value) : "null", json_text(one.cause));
    add(R"({{"kernel":{},"name":{},"phase":"{}"{},"ready_ns":{},"start_ns":{},"end_ns":{}{},"reads":{},"writes":{}}})",
        one.kernel.value, json_text(one.name), to_text(one.phase), if_so(one.is_replay, R"(,"replay":true)"),
        one.ready.value, one.start.value, one.end.value, stall, ids(one.reads), ids(one.writes));
  }
  for (const PlayedTransfer& one : timeline.transfers)
    add(R"({{"transfer":{},"bytes":{},"from":"{}","to":"{}","urgency":"{}","queued_ns":{},"begin_ns":{},"end_ns":{},)"
        R"("moves":{}{}{}{}{}}})",
        one.tensor ? std::to_string(one.tensor->value) : "null", one.bytes.value, to_text(one.from), to_text(one.to),
        to_text(one.urgency), one.queued.value, one.begin.value, one.end.value, one.moves,
        if_so(!one.copied, R"(,"copied":false)"), if_so(one.cancelled, R"(,"cancelled":true)"),
        if_so(one.from_before, R"(,"from_before":true)"), if_so(one.goes_on, R"(,"goes_on":true)"));
  for (const PlayedLife& one : timeline.lives)
    add(R"({{"{}":{},"at_ns":{}}})", one.born ? "born" : "freed", one.tensor.value, one.at.value);
  for (const TierLevel& one : timeline.levels) add(R"({{"level":{},"at_ns":{}}})", tiers(one.bytes), one.at.value);
  add(R"({{"lines":{}}})", lines + 1);
  return out;
}

Result<> save_timeline(const std::string& path, const RunTimeline& timeline) {
  const std::string text = to_json_lines(timeline);
  if (text.size() > kMostTraceBytes.value)
    return fail(Errc::bad_input, fmt::format("cannot write {}: it would be {}, and longer timelines than {} are not "
                                             "read; take a smaller program",
                                             path, to_text(Bytes{text.size()}), to_text(kMostTraceBytes)));
  return write_maybe_compressed(path, text);
}

bool names_timeline(std::string_view path) { return path.ends_with(".timeline") || path.ends_with(".timeline.zst"); }

}  // namespace spillway
