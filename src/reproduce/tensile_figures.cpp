#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "reproduce/tensile.h"
#include "reproduce/tensile_published.h"

namespace spillway {
namespace {

// These save what they can, even where all fits.
const char* const kTensile = "tensile:shrink=1";
const char* const kVdnn = "vdnn:shrink=1";
constexpr int kMostJobs = 4;            // of figure 6
constexpr std::uint32_t kTrained = 50;  // iterations of each job, as in the paper
constexpr std::uint32_t kLater = 10;    // iterations that a job of table IV has for itself

struct Part {
  const char* name;
  Measure measure;
  TensileMeasure published;
};
constexpr std::array kMeasures{Part{"MSR", &memory_saving, TensileMeasure::memory_saving},
                               Part{"EOR", &extra_overhead, TensileMeasure::extra_overhead},
                               Part{"CBR", &cost_benefit, TensileMeasure::cost_benefit}};

std::vector<std::string> networks() {
  std::vector<std::string> names;
  for (const std::string_view name : tensile_network_names()) names.emplace_back(name);
  return names;
}

// Its times are predicted from those of the others.
std::vector<std::string> other_networks(const std::string& network) {
  std::vector<std::string> names = networks();
  std::erase(names, network);
  return names;
}

Experiment on_a6000(const std::string& model, const std::string& policy) {
  return {.model = model, .policy = policy, .machine = "a6000"};
}

// All are jobs, so that one simulator says all: what outlives iterations is made at its first use.
Experiment whole(const std::string& network) {
  Experiment experiment = on_a6000(network, kTensile);
  experiment.iterations = kTrained;
  experiment.learned_from = other_networks(network);
  return experiment;
}
// The first iteration alone: then measured times replace the predicted ones.
Experiment cold_start(const std::string& network) {
  Experiment experiment = whole(network);
  experiment.iterations = 1;
  return experiment;
}
Experiment updated(const std::string& network) {
  Experiment experiment = whole(network);
  experiment.learned_from = {};
  return experiment;
}

// It has as much memory as TENSILE needs.
Experiment with_budget_of_tensile(Experiment experiment) {
  experiment.policy = "capuchin";
  experiment.budget_of = kTensile;
  return experiment;
}

Experiment of_jobs(const std::string& first, std::vector<ExperimentJob> beside, const std::string& system) {
  Experiment experiment = on_a6000(first, system == "vDNN" ? kVdnn : kTensile);
  experiment.iterations = kTrained;
  experiment.beside = std::move(beside);
  return system == "Capuchin" ? with_budget_of_tensile(std::move(experiment)) : experiment;
}

Experiment alone(const std::string& network, const std::string& system) {
  if (system == "vDNN") return of_jobs(network, {}, system);
  return system == "Capuchin" ? with_budget_of_tensile(whole(network)) : whole(network);
}

constexpr std::array kSystems{"vDNN", "Capuchin", "TENSILE"};

FigureSpec table_1() {
  FigureSpec figure{
      .id = "T1",
      .title = "TENSILE before and after its first update",
      .unit = "",
      .note =
          "Predictions have learned from the other four networks, whose times are estimates, too. "
          "They cost nothing here. The cold start is the first iteration alone here; in the paper it seems to be "
          "4 or 5 of 50.",
      .series = {}};
  for (const std::string& network : networks())
    for (const Part& part : kMeasures) {
      const auto add = [&](const char* phase, Experiment experiment) {
        figure.series.push_back({.model = network,
                                 .policy = phase,
                                 .part = part.name,
                                 .measure = part.measure,
                                 .points = {{.experiment = std::move(experiment),
                                             .published = tensile_table_1(network, phase, part.published)}}});
      };
      add("TENSILE", whole(network));
      add("cold start", cold_start(network));
      add("updated", updated(network));
    }
  return figure;
}

FigureSpec table_2() {
  FigureSpec figure{.id = "T2",
                    .title = "The first iteration",
                    .unit = "×",
                    .note =
                        "How many times as long it takes as one without a policy. That networks predict costs "
                        "nothing here.",
                    .series = {}};
  for (const std::string& network : networks())
    for (const char* system : {"TENSILE", "less prediction", "Capuchin"})
      figure.series.push_back(
          {.model = network,
           .policy = system,
           .measure = &first_extra_overhead,
           .points = {{.experiment = alone(network, system), .published = tensile_table_2(network, system)}}});
  return figure;
}

FigureSpec table_3() {
  FigureSpec figure{
      .id = "T3",
      .title = "One job",
      .unit = "",
      .note =
          "MSR: the part of the peak that is saved. EOR: how many times as long the 50 iterations "
          "take. CBR: MSR / EOR. Capuchin has as much memory as TENSILE needs. Jobs do not recompute here.",
      .series = {}};
  for (const std::string& network : networks())
    for (const Part& part : kMeasures)
      for (const char* system : kSystems)
        figure.series.push_back({.model = network,
                                 .policy = system,
                                 .part = part.name,
                                 .measure = part.measure,
                                 .points = {{.experiment = alone(network, system),
                                             .published = tensile_table_3(network, system, part.published)}}});
  return figure;
}

std::vector<PointSpec> up_to(int most, const std::string& network, const std::string& system) {
  std::vector<PointSpec> points;
  for (int jobs = 1; jobs <= most; ++jobs)
    points.push_back({.x = static_cast<double>(jobs),
                      .label = fmt::format("{} job{}", jobs, jobs == 1 ? "" : "s"),
                      .experiment = of_jobs(network, std::vector<ExperimentJob>(jobs - 1, {network}), system)});
  return points;
}

FigureSpec jobs_figure(std::string id, std::string title, const Part& part) {
  FigureSpec figure{.id = std::move(id),
                    .title = std::move(title),
                    .unit = "% of one job",
                    .chart = ChartKind::lines,
                    .x_title = "jobs",
                    .relative_to = "1 job",
                    .note =
                        "The paper has this as a drawing. Jobs of one network start together. Several jobs do not "
                        "recompute here, and plans are of exact times.",
                    .series = {}};
  for (const std::string& network : networks())
    for (const char* system : kSystems)
      figure.series.push_back(
          {.model = network, .policy = system, .measure = part.measure, .points = up_to(kMostJobs, network, system)});
  return figure;
}

FigureSpec waits() {
  FigureSpec figure{.id = "2",
                    .title = "How long Capuchin waits for tensors",
                    .unit = "% of the time",
                    .chart = ChartKind::lines,
                    .x_title = "jobs",
                    .note = "The paper does not say of which network its drawing is. Plans are of exact times.",
                    .series = {}};
  for (const std::string& network : networks())
    figure.series.push_back(
        {.model = network, .policy = "Capuchin", .measure = &percent_waiting, .points = up_to(3, network, "Capuchin")});
  return figure;
}

FigureSpec table_4() {
  FigureSpec figure{.id = "T4",
                    .title = "All five networks, in three orders",
                    .unit = "",
                    .note =
                        "The paper starts them one by one and does not say when: here when the one before has had "
                        "the time of 10 iterations. Published are means of three orders. Plans are of exact times.",
                    .series = {}};
  const std::vector<std::string> names = networks();
  constexpr std::array<std::array<std::size_t, 5>, 3> kOrders{{{0, 1, 2, 3, 4}, {4, 2, 0, 3, 1}, {3, 0, 4, 1, 2}}};
  for (const Part& part : kMeasures)
    for (const char* system : kSystems) {
      SeriesSpec series{.model = kFiveNetworks, .policy = system, .part = part.name, .measure = part.measure};
      for (std::size_t order = 0; order < kOrders.size(); ++order) {
        std::vector<ExperimentJob> beside;
        for (std::size_t at = 1; at < names.size(); ++at) beside.push_back({names[kOrders[order][at]], kLater});
        series.points.push_back({.x = static_cast<double>(order),
                                 .label = fmt::format("order {}", order + 1),
                                 .experiment = of_jobs(names[kOrders[order][0]], std::move(beside), system),
                                 .published = tensile_table_4(system, part.published)});
      }
      figure.series.push_back(std::move(series));
    }
  return figure;
}

FigureSpec batches(std::string id, std::string title, const Part& part) {
  FigureSpec figure{.id = std::move(id),
                    .title = std::move(title),
                    .unit = "% of batch 4",
                    .chart = ChartKind::lines,
                    .x_title = "batch",
                    .relative_to = "batch 4",
                    .note = "The paper has this as a drawing. Plans are of exact times.",
                    .series = {}};
  for (const std::string& network : networks()) {
    SeriesSpec series{.model = network, .policy = "TENSILE", .measure = part.measure};
    for (const int batch : tensile_batches())
      series.points.push_back({.x = static_cast<double>(batch),
                               .label = fmt::format("batch {}", batch),
                               .experiment = updated(tensile_model(network, batch))});
    figure.series.push_back(std::move(series));
  }
  return figure;
}

}  // namespace

std::vector<FigureSpec> tensile_figures() {
  return {waits(),
          table_1(),
          table_2(),
          table_3(),
          jobs_figure("6a", "Memory saved, by the number of jobs", kMeasures[0]),
          jobs_figure("6b", "Time, by the number of jobs", kMeasures[1]),
          jobs_figure("6c", "Memory saved for the time, by the number of jobs", kMeasures[2]),
          table_4(),
          batches("7a", "Memory saved, by the batch", kMeasures[0]),
          batches("7b", "Time, by the batch", kMeasures[1])};
}

}  // namespace spillway
