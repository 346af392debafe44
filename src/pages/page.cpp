#include "pages/page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "pages/embedded.h"
#include "trace/text_of.h"

namespace spillway {
namespace {

using Data = nlohmann::ordered_json;

Data tiers(const PerTier<Bytes>& bytes) { return {bytes.device.value, bytes.host.value, bytes.ssd.value}; }

Data limits(const PerTier<std::optional<Bytes>>& most) {
  Data result = Data::array();
  for (const Tier tier : kTiers) result.push_back(most[tier] ? Data(most[tier]->value) : Data(nullptr));
  return result;
}

Data id_or_null(const std::optional<TensorId>& tensor) { return tensor ? Data(tensor->value) : Data(nullptr); }

Data ids(const std::vector<TensorId>& tensors) {
  Data result = Data::array();
  for (const TensorId tensor : tensors) result.push_back(tensor.value);
  return result;
}

// Lists side by side, of the same lengths: half as long as a list of objects.
Data lists(std::initializer_list<const char*> keys) {
  Data result = Data::object();
  for (const char* key : keys) result[key] = Data::array();
  return result;
}

Data tensors_of(const RunTimeline& timeline) {
  Data result = lists({"name", "bytes", "kind", "at_start"});
  for (std::size_t t = 0; t < timeline.tensors.size(); ++t) {
    const PlayedTensor& one = timeline.tensors[t];
    result["name"].push_back(one.name.empty() ? fmt::format("tensor {}", t) : one.name);
    result["bytes"].push_back(one.bytes.value);
    result["kind"].push_back(to_text(one.kind));
    if (one.at_start != PerTier<Bytes>{})
      result["at_start"].push_back({t, one.at_start.device.value, one.at_start.host.value, one.at_start.ssd.value});
  }
  return result;
}

Data kernels_of(const RunTimeline& timeline) {
  Data result =
      lists({"name", "phase", "ready", "start", "end", "reads", "writes", "replay", "stall", "waited_for", "thread"});
  result["cause"] = Data::object();  // by place: few wait
  for (std::size_t k = 0; k < timeline.kernels.size(); ++k) {
    const PlayedKernel& one = timeline.kernels[k];
    result["name"].push_back(one.name);
    result["phase"].push_back(to_text(one.phase));
    result["ready"].push_back(one.ready.value);
    result["start"].push_back(one.start.value);
    result["end"].push_back(one.end.value);
    result["reads"].push_back(ids(one.reads));
    result["writes"].push_back(ids(one.writes));
    result["replay"].push_back(one.is_replay ? 1 : 0);
    result["stall"].push_back(to_text(one.stall));
    result["waited_for"].push_back(id_or_null(one.waited_for));
    result["thread"].push_back(one.thread);
    if (!one.cause.empty()) result["cause"][std::to_string(k)] = one.cause;
  }
  return result;
}

Data transfers_of(const RunTimeline& timeline) {
  Data result = lists({"tensor", "bytes", "from", "to", "urgency", "queued", "begin", "end", "flags"});
  for (const PlayedTransfer& one : timeline.transfers) {
    result["tensor"].push_back(id_or_null(one.tensor));
    result["bytes"].push_back(one.bytes.value);
    result["from"].push_back(static_cast<unsigned>(one.from));
    result["to"].push_back(static_cast<unsigned>(one.to));
    result["urgency"].push_back(to_text(one.urgency));
    result["queued"].push_back(one.queued.value);
    result["begin"].push_back(one.begin.value);
    result["end"].push_back(one.end.value);
    result["flags"].push_back((one.copied ? 1 : 0) + (one.cancelled ? 2 : 0) + (one.from_before ? 4 : 0) +
                              (one.goes_on ? 8 : 0));
  }
  return result;
}

// What all pages show of one iteration.
Data head_of(const RunTimeline& timeline) {
  Data result{{"trace", timeline.trace_name},          {"policy", timeline.policy},
              {"machine", timeline.machine},           {"steady", timeline.steady},
              {"iteration", timeline.iteration.value}, {"ideal", timeline.ideal.value},
              {"capacity", limits(timeline.capacity)}, {"peak", tiers(timeline.peak)},
              {"heading", heading_of(timeline)},       {"iterations", timeline.iterations},
              {"shows_waits", timeline.shows_waits},   {"notes", timeline.notes}};
  result["marks"] = lists({"at", "text"});
  for (const PlayedMark& one : timeline.marks) {
    result["marks"]["at"].push_back(one.at.value);
    result["marks"]["text"].push_back(one.text);
  }
  result["levels"] = lists({"at", "device", "host", "ssd"});
  for (const TierLevel& one : timeline.levels) {
    result["levels"]["at"].push_back(one.at.value);
    for (const Tier tier : kTiers) result["levels"][std::string(to_text(tier))].push_back(one.bytes[tier].value);
  }
  return result;
}

Data data_of(const RunTimeline& timeline) {
  Data result = head_of(timeline);
  result["tensors"] = tensors_of(timeline);
  result["kernels"] = kernels_of(timeline);
  result["transfers"] = transfers_of(timeline);
  result["lives"] = lists({"at", "tensor", "born"});
  for (const PlayedLife& one : timeline.lives) {
    result["lives"]["at"].push_back(one.at.value);
    result["lives"]["tensor"].push_back(one.tensor.value);
    result["lives"]["born"].push_back(one.born ? 1 : 0);
  }
  return result;
}

// Within a script element: nothing in it may end that element.
std::string in_script(std::string text) {
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");
  return text;
}

std::string in_markup(std::string_view text) {
  std::string result;
  for (const char one : text) {
    if (one == '<')
      result += "&lt;";
    else if (one == '&')
      result += "&amp;";
    else
      result += one;
  }
  return result;
}

struct Filling {
  std::string_view frame, script;
  const std::string& title;
  const Data& data;
};

// The frame with its marks replaced, one after the other: what is filled in is not looked at again.
std::string filled(const Filling& filling) {
  const PageParts parts = page_parts();
  const std::string data = in_script(filling.data.dump(-1, ' ', false, Data::error_handler_t::replace));
  std::string page;
  std::string_view rest = filling.frame;
  const auto fill = [&](std::string_view mark, std::initializer_list<std::string_view> contents) {
    const std::size_t at = rest.find(mark);
    CHECK(at != std::string_view::npos);
    page.append(rest.substr(0, at));
    for (const std::string_view content : contents) page.append(content);
    rest.remove_prefix(at + mark.size());
  };
  fill("{{title}}", {in_markup(filling.title)});
  fill("{{style}}", {parts.style});
  fill("{{data}}", {data});
  fill("{{d3}}", {parts.d3});
  fill("{{script}}", {parts.shared_script, filling.script});
  return page.append(rest);
}

// What the page cannot do without. Other keys may be null, as docs/formats/report.md says.
std::string lacks_what(const Data& report) {
  if (!report.is_object()) return "is no JSON object";
  for (const char* key : {"iteration_count", "exit_status", "wall_seconds", "stall_seconds", "peak_device_bytes",
                          "peak_host_bytes", "peak_ssd_bytes", "device_budget_bytes"})
    if (!report.contains(key) || !report[key].is_number()) return fmt::format("has no number '{}'", key);
  for (const char* key : {"iterations", "phases", "most_moved_tensors", "predictions", "notices"})
    if (!report.contains(key) || !report[key].is_array()) return fmt::format("has no list '{}'", key);
  for (const char* key :
       {"seconds", "waited_seconds", "faults", "moved_in_bytes", "moved_out_bytes", "operators", "planned_operators"})
    for (const Data& one : report["iterations"])
      if (!one.is_object() || !one.contains(key) || !one[key].is_number())
        return fmt::format("has an iteration without a number '{}'", key);
  for (const char* key :
       {"moved_bytes", "plan", "gpu", "advice", "no_plan_because", "error", "device", "policy", "unlimited"})
    if (!report.contains(key)) return fmt::format("has no '{}'", key);
  return "";
}

}  // namespace

std::string page_of(const RunTimeline& timeline) {
  const PageParts parts = page_parts();
  return filled({parts.frame, parts.script, timeline.trace_name, data_of(timeline)});
}

std::string comparison_page_of(const std::vector<RunTimeline>& timelines, const std::vector<std::string>& infeasible) {
  const PageParts parts = page_parts();
  Data data{{"runs", Data::array()}, {"infeasible", infeasible}};
  for (const RunTimeline& one : timelines) {
    data["trace"] = one.trace_name;
    data["machine"] = one.machine;
    Data& run = data["runs"].emplace_back(head_of(one));
    run["kernels"] = kernels_of(one);
    for (const char* unused : {"reads", "writes", "cause", "waited_for", "replay", "thread"})
      run["kernels"].erase(unused);
  }
  const std::string title = timelines.empty() ? std::string() : timelines.front().trace_name;
  return filled({parts.compare_frame, parts.compare_script, title, data});
}

Result<std::string> report_page_of(const std::string& json, const std::string& where) {
  constexpr int kDeepest = 4;
  const Data report = nests_deeper(json, kDeepest) ? Data() : Data::parse(json, nullptr, false);
  const std::string lack = report.is_discarded() ? "is no JSON, or is cut off" : lacks_what(report);
  if (!lack.empty())
    return fail(Errc::bad_input, fmt::format("{}: the report {}; is it of another version? `spillway run --json FILE` "
                                             "writes one",
                                             where, lack));
  const PageParts parts = page_parts();
  return filled({parts.report_frame, parts.report_script, "A run", report});
}

}  // namespace spillway
