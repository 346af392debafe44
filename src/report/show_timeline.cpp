#include "report/show_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/text.h"
#include "report/json.h"
#include "report/table.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kWaitsShown = 10;
constexpr std::size_t kKernelColumns = 40;
constexpr std::array kStalls{Stall::asked_late, Stall::on_its_way, Stall::behind_others, Stall::no_room, Stall::other};
constexpr std::array<std::pair<Tier, Tier>, 4> kLinks{
    {{Tier::host, Tier::device}, {Tier::ssd, Tier::device}, {Tier::device, Tier::host}, {Tier::device, Tier::ssd}}};

// As the page calls them.
const char* in_words(Stall stall) {
  switch (stall) {
    case Stall::none:
      return "none";
    case Stall::asked_late:
      return "asked for too late";
    case Stall::on_its_way:
      return "still on its way";
    case Stall::behind_others:
      return "behind other transfers";
    case Stall::no_room:
      return "no room on the device";
    case Stall::other:
      return "something else";
  }
  return "?";
}

struct Sum {
  std::uint64_t count = 0;
  Nanos time;
  Bytes bytes;
};

struct WaitFacts {
  explicit WaitFacts(const RunTimeline& timeline) {
    for (const PlayedKernel& kernel : timeline.kernels) {
      if (kernel.start == kernel.ready) continue;
      Sum& sum = stalls[static_cast<std::size_t>(kernel.stall)];
      ++sum.count;
      sum.time += kernel.wait();
      ++waits.count;
      waits.time += kernel.wait();
      longest.push_back(&kernel);
    }
    std::ranges::stable_sort(longest, std::greater{}, &PlayedKernel::wait);
    longest.resize(std::min(longest.size(), kWaitsShown));
    for (const PlayedTransfer& one : timeline.transfers) {
      if (!one.copied || one.cancelled) continue;
      Sum& sum = moved(one.from, one.to);
      sum.time += one.end - one.begin;
      if (one.goes_on) continue;  // Its bytes are there, and count, in the next iteration.
      ++sum.count;
      sum.bytes += one.bytes;
    }
  }

  std::array<Sum, 6> stalls{};  // by cause
  Sum waits;
  PerLink<Sum> moved;
  std::vector<const PlayedKernel*> longest;
};

double share(Nanos part, Nanos whole) { return whole == Nanos{} ? 0 : seconds(part) / seconds(whole); }

std::string percent(Nanos part, Nanos whole) { return fmt::format("{:.1f} %", 100 * share(part, whole)); }

std::string head_text(const RunTimeline& timeline, const WaitFacts& facts) {
  Table table({{"timeline", Align::left}, {printable(timeline.trace_name, kKernelColumns), Align::right}});
  table.add_row({"shows", printable(heading_of(timeline), 2 * kKernelColumns)});
  if (!timeline.trace_hash.empty()) table.add_row({"trace's hash", timeline.trace_hash});
  table.add_row({timeline.iterations == 1 ? "iteration" : "time", to_text(timeline.iteration)});
  if (!timeline.steady) table.add_row({"", "the last one; they never become equal"});
  if (timeline.ideal > Nanos{}) {
    table.add_row({"ideal", to_text(timeline.ideal)});
    table.add_row({"of ideal", percent(timeline.ideal, timeline.iteration)});
  }
  table.add_row({"kernels", std::to_string(timeline.kernels.size())});
  table.add_row({"that waited", std::to_string(facts.waits.count)});
  table.add_row({"for", to_text(facts.waits.time)});
  return table.text();
}

std::string stalls_text(const RunTimeline& timeline, const WaitFacts& facts) {
  Table table({{"why kernels waited", Align::left}, {"kernels"}, {"time"}, {"of the time"}});
  for (const Stall stall : kStalls) {
    const Sum& sum = facts.stalls[static_cast<std::size_t>(stall)];
    if (sum.count > 0)
      table.add_row(
          {in_words(stall), std::to_string(sum.count), to_text(sum.time), percent(sum.time, timeline.iteration)});
  }
  return table.text();
}

std::string waits_text(const WaitFacts& facts) {
  Table table({{"longest waits", Align::left}, {"at"}, {"why", Align::left}});
  for (const PlayedKernel* kernel : facts.longest)
    table.add_row({printable(kernel->name, kKernelColumns), to_text(kernel->ready), printable(kernel->cause)});
  return table.text();
}

std::string links_text(const RunTimeline& timeline, const WaitFacts& facts) {
  Table table({{"moved", Align::left}, {"bytes"}, {"transfers"}, {"busy"}, {"of the time"}});
  for (const auto& [from, to] : kLinks)
    if (const Sum& sum = facts.moved(from, to); sum.count > 0)
      table.add_row({fmt::format("{} to {}", to_text(from), to_text(to)), to_text(sum.bytes), std::to_string(sum.count),
                     to_text(sum.time), percent(sum.time, timeline.iteration)});
  return table.text();
}

std::string tiers_text(const RunTimeline& timeline) {
  Table table({{"memory", Align::left}, {"peak"}, {"holds"}});
  for (const Tier tier : kTiers)
    if (timeline.peak[tier] > Bytes{})
      table.add_row({std::string(to_text(tier)), to_text(timeline.peak[tier]),
                     timeline.capacity[tier] ? to_text(*timeline.capacity[tier]) : "no limit"});
  return table.text();
}

Json wait_json(const RunTimeline& timeline, const PlayedKernel& kernel) {
  return {{"kernel", kernel.kernel.value},
          {"name", kernel.name},
          {"at_seconds", seconds(kernel.ready)},
          {"waited_seconds", seconds(kernel.wait())},
          {"stall", to_text(kernel.stall)},
          {"waited_for", kernel.waited_for ? Json(timeline.tensors[kernel.waited_for->value].name) : Json(nullptr)},
          {"cause", kernel.cause}};
}

}  // namespace

std::string timeline_table(const RunTimeline& timeline) {
  const WaitFacts facts(timeline);
  std::string text = head_text(timeline, facts);
  if (facts.waits.count > 0) text += "\n" + stalls_text(timeline, facts) + "\n" + waits_text(facts);
  if (!timeline.transfers.empty()) text += "\n" + links_text(timeline, facts);
  return text + "\n" + tiers_text(timeline);
}

std::string timeline_json(const RunTimeline& timeline) {
  const WaitFacts facts(timeline);
  Json report = new_report();
  report["trace"] = {{"name", timeline.trace_name}, {"hash", timeline.trace_hash}};
  report["policy"] = timeline.policy;
  report["machine"] = {{"name", timeline.machine}};
  report["steady"] = timeline.steady;
  report["iteration_seconds"] = seconds(timeline.iteration);
  report["ideal_seconds"] = seconds(timeline.ideal);
  report["kernels"] = timeline.kernels.size();
  report["waiting_kernels"] = facts.waits.count;
  report["waited_seconds"] = seconds(facts.waits.time);
  report["stalls"] = Json::object();
  for (const Stall stall : kStalls) {
    const Sum& sum = facts.stalls[static_cast<std::size_t>(stall)];
    report["stalls"][std::string(to_text(stall))] = {{"kernels", sum.count}, {"seconds", seconds(sum.time)}};
  }
  report["longest_waits"] = Json::array();
  for (const PlayedKernel* kernel : facts.longest) report["longest_waits"].push_back(wait_json(timeline, *kernel));
  report["links"] = Json::object();
  for (const auto& [from, to] : kLinks) {
    const Sum& sum = facts.moved(from, to);
    report["links"][fmt::format("{}_to_{}", to_text(from), to_text(to))] = {
        {"bytes", sum.bytes.value}, {"transfers", sum.count}, {"busy_seconds", seconds(sum.time)}};
  }
  report["peak_bytes"] = json_of(timeline.peak);
  report["capacity_bytes"] = Json::object();
  for (const Tier tier : kTiers)
    report["capacity_bytes"][std::string(to_text(tier))] =
        timeline.capacity[tier] ? Json(timeline.capacity[tier]->value) : Json(nullptr);
  return to_text(report);
}

}  // namespace spillway
