#include <fmt/format.h>

#include <array>
#include <string>

#include "reproduce/g10.h"
#include "reproduce/g10_designs.h"
#include "reproduce/g10_published.h"

namespace spillway {
namespace {

SeriesSpec of_trace(const PaperModel& model, std::string part,
                    std::variant<Measure, TraceMeasure, TraceCurve> measure) {
  return {.model = model.id, .policy = "", .part = std::move(part), .measure = measure};
}

FigureSpec figure_2() {
  FigureSpec figure{.id = "2",
                    .title = "Memory that a kernel uses, and that is alive",
                    .unit = "% of peak",
                    .chart = ChartKind::curves,
                    .x_title = "kernel, in the order of execution",
                    .is_of_times = false,
                    .series = {}};
  for (const PaperModel& model : g10_models()) {
    figure.series.push_back(of_trace(model, "alive", &live_percent));
    figure.series.push_back(of_trace(model, "active", &active_percent));
    figure.series.push_back(of_trace(model, "active, mean %", &active_percent_of_peak));
    figure.series.push_back(of_trace(model, "kernels below 10 %, %", &kernels_below_tenth));
    figure.series.push_back(of_trace(model, "largest kernel, GB", &largest_kernel_gigabytes));
  }
  return figure;
}

FigureSpec figure_3() {
  FigureSpec figure{.id = "3",
                    .title = "How long tensors are not used",
                    .unit = "% of periods",
                    .chart = ChartKind::curves,
                    .x_title = "length of the inactive period, at most, in seconds",
                    .x_is_logarithmic = true,
                    .one_panel = true,
                    .series = {}};
  for (const PaperModel& model : g10_models()) {
    figure.series.push_back(of_trace(model, "", &inactive_lengths));
    figure.series.push_back(of_trace(model, "above 0.1 s, %", &percent_longer_than_100ms));
    figure.series.push_back(of_trace(model, "above 10 s, %", &percent_longer_than_10s));
  }
  return figure;
}

FigureSpec figure_4() {
  FigureSpec figure{.id = "4",
                    .title = "How long tensors are not used, and how large they are",
                    .unit = "size of the tensor",
                    .chart = ChartKind::scatter,
                    .x_title = "length of the inactive period",
                    .x_is_logarithmic = true,
                    .y_is_logarithmic = true,
                    .note = "A dot is a period. Periods whose dots would lie on each other are drawn once.",
                    .series = {}};
  std::vector<PaperModel> models = g10_models();
  models.insert(models.begin(), g10_model("Inceptionv3-512"));
  for (const PaperModel& model : models) {
    figure.series.push_back(of_trace(model, "periods", &inactive_periods));
    figure.series.push_back(of_trace(model, "long enough for the SSD, %", &percent_that_hide_swaps));
    figure.series.push_back(of_trace(model, "shortest, µs", &shortest_inactivity_microseconds));
    figure.series.push_back(of_trace(model, "longest, s", &longest_inactivity_seconds));
    figure.series.push_back(of_trace(model, "smallest, bytes", &smallest_inactive_bytes));
    figure.series.push_back(of_trace(model, "largest, GB", &largest_inactive_gigabytes));
  }
  return figure;
}

// The same designs with other models' traces.
FigureSpec throughput(std::string id, std::string title, std::string note, const std::vector<PaperModel>& models) {
  FigureSpec figure{
      .id = std::move(id), .title = std::move(title), .unit = "% of ideal", .note = std::move(note), .series = {}};
  for (const PaperModel& model : models)
    for (const G10Design& design : kG10Designs)
      figure.series.push_back({.model = model.id,
                               .policy = design.name,
                               .measure = &percent_of_ideal,
                               .points = {{.experiment = g10_experiment(model.id, design),
                                           .published = g10_figure_11(g10_batch_of(model), design.name)}}});
  return figure;
}

FigureSpec figure_12() {
  FigureSpec figure{.id = "12",
                    .title = "What an iteration's time is spent on",
                    .unit = "% of the iteration",
                    .chart = ChartKind::stacked_bars,
                    .series = {}};
  struct Part {
    const char* name;
    Measure measure;
  };
  constexpr std::array kParts{Part{"computing", &percent_computing}, Part{"overlapped", &percent_overlapped},
                              Part{"stalled", &percent_stalled}};
  for (const PaperModel& model : g10_models())
    for (const G10Design& design : kFourG10Designs)
      for (const Part& part : kParts)
        figure.series.push_back({.model = model.id,
                                 .policy = design.name,
                                 .part = part.name,
                                 .measure = part.measure,
                                 .points = {{.experiment = g10_experiment(model.id, design),
                                             .published = g10_figure_12(model.id, design.name, part.name)}}});
  return figure;
}

FigureSpec figure_13() {
  FigureSpec figure{.id = "13",
                    .title = "Kernels that take over 1 % longer than alone",
                    .unit = "% of kernels",
                    .note = "The paper has this as a drawing; its text has ranges over five models.",
                    .series = {}};
  for (const PaperModel& model : g10_models())
    for (const G10Design& design : kFourG10Designs)
      figure.series.push_back({.model = model.id,
                               .policy = design.name,
                               .measure = &percent_slowed,
                               .points = {{.experiment = g10_experiment(model.id, design)}}});
  return figure;
}

FigureSpec figure_14() {
  FigureSpec figure{.id = "14",
                    .title = "Bytes moved between the device and each tier, both ways",
                    .unit = "GB an iteration",
                    .chart = ChartKind::stacked_bars,
                    .series = {}};
  for (const PaperModel& model : g10_models())
    for (const G10Design& design : kFourG10Designs)
      for (const auto& [part, measure] : {std::pair("SSD", &ssd_gigabytes), std::pair("host", &host_gigabytes)})
        figure.series.push_back({.model = model.id,
                                 .policy = design.name,
                                 .part = part,
                                 .measure = measure,
                                 .points = {{.experiment = g10_experiment(model.id, design),
                                             .published = g10_figure_14(model.id, design.name, part)}}});
  return figure;
}

FigureSpec figure_18() {
  FigureSpec figure{.id = "18",
                    .title = "Throughput with faster SSDs, on a link of 32 GB/s",
                    .unit = "% of ideal",
                    .chart = ChartKind::lines,
                    .x_title = "SSD, GB/s (2 to 10 drives)",
                    .note = "The paper has BERT with batch 512 here. With batch 256 nothing is published.",
                    .series = {}};
  std::vector<PaperModel> models = g10_models();
  models.insert(models.begin() + 1, g10_model("BERT-512"));
  for (const PaperModel& model : models)
    for (const G10Design& design : kFourG10Designs) {
      SeriesSpec series{.model = model.id, .policy = design.name, .measure = &percent_of_ideal};
      for (const int drives : {2, 4, 6, 8, 10}) {
        Experiment with = g10_experiment(model.id, design);
        with.overrides = {"link.to_device=32GB/s", "link.from_device=32GB/s", fmt::format("ssd.count={}", drives)};
        // As the text of the paper has it. Products of 3.2 are not exact.
        const double rate = static_cast<double>(drives * 32) / 10;
        series.points.push_back({.x = rate,
                                 .label = fmt::format("{} GB/s", rate),
                                 .experiment = std::move(with),
                                 .published = g10_figure_18(model.id, design.name, rate)});
      }
      figure.series.push_back(std::move(series));
    }
  return figure;
}

FigureSpec figure_19() {
  FigureSpec figure{
      .id = "19",
      .title = "G10 when kernels take other times than were profiled",
      .unit = "% of no error",
      .chart = ChartKind::lines,
      .x_title = "error of the profile, ± %",
      .one_panel = true,
      .relative_to = "0 %",
      .note = "The paper does not say how errors are spread; here each kernel has its own, even in the range.",
      .series = {}};
  for (const PaperModel& model : g10_models()) {
    SeriesSpec series{.model = model.id, .policy = "G10", .measure = &percent_of_ideal};
    for (const std::uint64_t percent : {0u, 5u, 10u, 15u, 20u, 25u}) {
      Experiment with = g10_experiment(model.id, kG10Designs[5]);
      with.noise_percent = percent;
      series.points.push_back({.x = static_cast<double>(percent),
                               .label = fmt::format("{} %", percent),
                               .experiment = std::move(with),
                               .published = g10_figure_19(model.id, static_cast<double>(percent))});
    }
    figure.series.push_back(std::move(series));
  }
  return figure;
}

// Section 7.7 has no figure.
FigureSpec section_7_7(std::string id, std::string title, std::string unit, Measure measure,
                       std::optional<double> (*published)(std::string_view model, std::string_view policy)) {
  FigureSpec figure{.id = std::move(id),
                    .title = std::move(title),
                    .unit = std::move(unit),
                    .note =
                        "Machine a100-flash: flash of assumed geometry below the SSD, 30 drive writes a day for five "
                        "years.",
                    .series = {}};
  for (const PaperModel& model : g10_models())
    for (const G10Design& design : kFourG10Designs) {
      Experiment with = g10_experiment(model.id, design);
      with.machine = "a100-flash";
      figure.series.push_back({.model = model.id,
                               .policy = design.name,
                               .measure = measure,
                               .points = {{.experiment = std::move(with),
                                           .published = published ? published(model.id, design.name) : std::nullopt}}});
    }
  return figure;
}

}  // namespace

std::vector<FigureSpec> g10_figures() {
  return {figure_2(),
          figure_3(),
          figure_4(),
          throughput("11", "Training throughput",
                     "In the artifact G10-GDS and G10-Host have four times the device's memory; here 40 GiB.",
                     g10_models()),
          throughput("11b", "Training throughput, with the times of a roofline",
                     "Dry-run traces whose times are not stretched to the published ideal ones.", g10_by_roofline()),
          figure_12(),
          figure_13(),
          figure_14(),
          g10_figure_15_spec(),
          g10_figure_16_spec(),
          g10_figure_17_spec(),
          figure_18(),
          figure_19(),
          section_7_7("7.7a", "Bytes written to the SSD", "GB an iteration", &ssd_written_gigabytes, &g10_ssd_writes),
          section_7_7("7.7b", "How long the SSD endures", "years", &flash_years, nullptr)};
}

}  // namespace spillway
