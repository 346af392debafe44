#include "report/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "analysis/characterise.h"
#include "analysis/timeline.h"
#include "base/text.h"
#include "report/json.h"
#include "report/table.h"
#include "trace/text_of.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMomentsShown = 5;
constexpr std::size_t kNameColumns = 40;

struct KindTotal {
  std::size_t tensors = 0;
  Bytes bytes;
  std::size_t persistent = 0;
};

// All that is worth saying about a trace, computed once for both forms.
struct Facts {
  explicit Facts(const Trace& trace)
      : lifetimes(analyse_lifetimes(trace)),
        timeline(ideal_timeline(trace)),
        character(characterise(trace, lifetimes)),
        moments(heaviest_moments(lifetimes, kMomentsShown)),
        peak_live(std::ranges::max(lifetimes.live)),
        largest_working_set(std::ranges::max(lifetimes.working_set)),
        inactive_periods(std::ranges::count(lifetimes.periods, false, &InactivePeriod::last)),
        replayable(
            std::ranges::count_if(trace.kernels, [](const Kernel& kernel) { return kernel.replay.has_value(); })) {
    for (const Tensor& tensor : trace.tensors) {
      KindTotal& total = kinds[static_cast<std::size_t>(tensor.kind)];
      ++total.tensors;
      total.bytes += tensor.bytes;
      if (tensor.persistent) {
        ++total.persistent;
        persistent += tensor.bytes;
      }
    }
    for (const Kernel& kernel : trace.kernels) {
      ++phase_kernels[static_cast<std::size_t>(kernel.phase)];
      phase_time[static_cast<std::size_t>(kernel.phase)] += kernel.gap + kernel.duration;
    }
  }

  Lifetimes lifetimes;
  Timeline timeline;
  Characterisation character;
  std::vector<Moment> moments;
  Bytes peak_live, largest_working_set, persistent;
  std::ptrdiff_t inactive_periods, replayable;
  std::array<KindTotal, kTensorKinds.size()> kinds{};
  std::array<std::size_t, kPhases.size()> phase_kernels{};
  std::array<Nanos, kPhases.size()> phase_time{};
};

// A long iteration to the millisecond, by which people compare it with what others published.
std::string ideal_text(Nanos time) {
  return time < Nanos{1'000'000'000} ? to_text(time) : fmt::format("{:.3f} s", seconds(time));
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string summary_text(const LoadedTrace& loaded, const Facts& facts) {
  const Trace& trace = loaded.trace;
  Table table({{"trace", Align::left}, {printable(trace.name, kNameColumns), Align::right}});
  table.add_row({"source", printable(trace.source, kNameColumns)});
  if (!trace.estimated.empty()) table.add_row({"times are estimates", printable(trace.estimated, kNameColumns)});
  table.add_row({"hash", loaded.hash});
  table.add_row({"kernels", std::to_string(trace.kernels.size())});
  table.add_row({"that can be replayed", std::to_string(facts.replayable)});
  table.add_row({"tensors", std::to_string(trace.tensors.size())});
  table.add_row({"ideal iteration", ideal_text(facts.timeline.iteration)});
  table.add_row({"peak live", to_text(facts.peak_live)});
  table.add_row({"largest working set", to_text(facts.largest_working_set)});
  table.add_row({"persistent", to_text(facts.persistent)});
  table.add_row({"inactive periods", std::to_string(facts.inactive_periods)});
  return table.text();
}

std::string kinds_text(const Facts& facts) {
  Table table({{"kind", Align::left}, {"tensors"}, {"persistent"}, {"bytes"}});
  for (const TensorKind kind : kTensorKinds) {
    const KindTotal& total = facts.kinds[static_cast<std::size_t>(kind)];
    if (total.tensors == 0) continue;
    table.add_row({std::string(to_text(kind)), std::to_string(total.tensors), std::to_string(total.persistent),
                   to_text(total.bytes)});
  }
  return table.text();
}

std::string phases_text(const Facts& facts) {
  Table table({{"phase", Align::left}, {"kernels"}, {"time"}});
  for (const Phase phase : kPhases) {
    const auto p = static_cast<std::size_t>(phase);
    if (facts.phase_kernels[p] == 0) continue;
    table.add_row({std::string(to_text(phase)), std::to_string(facts.phase_kernels[p]), to_text(facts.phase_time[p])});
  }
  return table.text();
}

std::string activity_text(const Characterisation& c) {
  Table table({{"bytes that a kernel uses", Align::left}, {"mean"}, {"median"}, {"most"}});
  table.add_row({"of those alive then", percent(c.active_of_live_mean), percent(c.active_of_live_median),
                 percent(c.active_of_live_most)});
  table.add_row({"of the peak", percent(c.active_of_peak_mean), percent(c.active_of_peak_median),
                 percent(c.active_of_peak_most)});
  return table.text();
}

std::string periods_text(const Characterisation& c) {
  Table quantiles({{"inactive periods", Align::left}, {"least"}, {"10 %"}, {"median"}, {"90 %"}, {"most"}});
  const auto& length = c.inactive_length;
  const auto& bytes = c.inactive_bytes;
  quantiles.add_row({"length", to_text(length.least), to_text(length.tenth), to_text(length.median),
                     to_text(length.ninetieth), to_text(length.most)});
  quantiles.add_row({"size", to_text(bytes.least), to_text(bytes.tenth), to_text(bytes.median),
                     to_text(bytes.ninetieth), to_text(bytes.most)});
  Table shares({{"of them", Align::left}, {"share"}});
  shares.add_row({"longer than 20 us", percent(c.longer_than_20us)});
  shares.add_row({"longer than 100 ms", percent(c.longer_than_100ms)});
  shares.add_row({"longer than 10 s", percent(c.longer_than_10s)});
  shares.add_row({"long enough for a trip to an SSD of 3.2/3.0 GB/s", percent(c.hide_ssd_round_trip)});
  return quantiles.text() + "\n" + shares.text();
}

std::string moments_text(const Trace& trace, const Facts& facts) {
  Table table({{"heaviest moments", Align::left}, {"kernel"}, {"at"}, {"live"}, {"working set"}});
  for (const Moment& moment : facts.moments)
    table.add_row({printable(trace[moment.kernel].name, kNameColumns), std::to_string(moment.kernel.value),
                   ideal_text(facts.timeline.start_of(moment.kernel)), to_text(moment.live),
                   to_text(moment.working_set)});
  return table.text();
}

template <class T, class Convert>
Json quantiles_json(const Quantiles<T>& q, Convert convert) {
  return {{"least", convert(q.least)},
          {"tenth", convert(q.tenth)},
          {"median", convert(q.median)},
          {"ninetieth", convert(q.ninetieth)},
          {"most", convert(q.most)}};
}

Json kinds_json(const Facts& facts) {
  Json kinds = Json::object();
  for (const TensorKind kind : kTensorKinds) {
    const KindTotal& total = facts.kinds[static_cast<std::size_t>(kind)];
    kinds[std::string(to_text(kind))] = {
        {"tensors", total.tensors}, {"persistent", total.persistent}, {"bytes", total.bytes.value}};
  }
  return kinds;
}

Json phases_json(const Facts& facts) {
  Json phases = Json::object();
  for (const Phase phase : kPhases) {
    const auto p = static_cast<std::size_t>(phase);
    phases[std::string(to_text(phase))] = {{"kernels", facts.phase_kernels[p]},
                                           {"seconds", seconds(facts.phase_time[p])}};
  }
  return phases;
}

Json characterisation_json(const Characterisation& c) {
  return {{"active_share_of_live",
           {{"mean", c.active_of_live_mean}, {"median", c.active_of_live_median}, {"most", c.active_of_live_most}}},
          {"active_share_of_peak",
           {{"mean", c.active_of_peak_mean}, {"median", c.active_of_peak_median}, {"most", c.active_of_peak_most}}},
          {"inactive_seconds", quantiles_json(c.inactive_length, [](Nanos time) { return seconds(time); })},
          {"inactive_bytes", quantiles_json(c.inactive_bytes, [](Bytes bytes) { return bytes.value; })},
          {"inactive_share_longer_than_20us", c.longer_than_20us},
          {"inactive_share_longer_than_100ms", c.longer_than_100ms},
          {"inactive_share_longer_than_10s", c.longer_than_10s},
          {"inactive_share_hiding_ssd_round_trip", c.hide_ssd_round_trip}};
}

}  // namespace

std::string show_table(const LoadedTrace& loaded) {
  const Facts facts(loaded.trace);
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", summary_text(loaded, facts), kinds_text(facts), phases_text(facts),
                     activity_text(facts.character), periods_text(facts.character), moments_text(loaded.trace, facts));
}

std::string show_json(const LoadedTrace& loaded) {
  const Trace& trace = loaded.trace;
  const Facts facts(trace);
  Json report = new_report(loaded);
  report["source"] = trace.source;
  if (!trace.estimated.empty()) report["estimated"] = trace.estimated;
  report["kernels"] = trace.kernels.size();
  report["replayable_kernels"] = facts.replayable;
  report["tensors"] = trace.tensors.size();
  report["ideal_seconds"] = seconds(facts.timeline.iteration);
  report["peak_live_bytes"] = facts.peak_live.value;
  report["largest_working_set_bytes"] = facts.largest_working_set.value;
  report["persistent_bytes"] = facts.persistent.value;
  report["inactive_periods"] = facts.inactive_periods;
  report["tensors_by_kind"] = kinds_json(facts);
  report["kernels_by_phase"] = phases_json(facts);
  report["characterisation"] = characterisation_json(facts.character);
  report["heaviest_moments"] = Json::array();
  for (const Moment& moment : facts.moments)
    report["heaviest_moments"].push_back({{"kernel", moment.kernel.value},
                                          {"name", trace[moment.kernel].name},
                                          {"at_seconds", seconds(facts.timeline.start_of(moment.kernel))},
                                          {"live_bytes", moment.live.value},
                                          {"working_set_bytes", moment.working_set.value}});
  return to_text(report);
}

}  // namespace spillway
