#include <fmt/format.h>

#include "reproduce/g10.h"
#include "reproduce/g10_designs.h"
#include "reproduce/g10_published.h"

namespace spillway {
namespace {

constexpr std::array kHostGigabytes{0, 16, 32, 64, 128, 256};

Experiment with_host(Experiment experiment, int gigabytes) {
  experiment.overrides = {gigabytes > 0 ? fmt::format("host.memory={}GB", gigabytes) : "host.memory=0"};
  return experiment;
}

// What figures 15 and 16 have of figure 17.
std::optional<double> published(const std::string& model, const G10Design& design, int gigabytes) {
  if (std::string_view(design.name) == "G10") return g10_figure_16(model, gigabytes);
  if (std::string_view(design.name) == "DeepUM+" && gigabytes != 128) return std::nullopt;
  return g10_figure_15(model, design.name);
}

}  // namespace

FigureSpec g10_figure_15_spec() {
  FigureSpec figure{
      .id = "15",
      .title = "Throughput by the batch",
      .unit = "% of ideal",
      .chart = ChartKind::lines,
      .x_title = "batch",
      .note =
          "Dry runs need less memory than the artifact's traces. So lines jump where they change from one "
          "to the other.",
      .series = {}};
  for (const G10Network& network : g10_networks())
    for (const G10Design& design : kFourG10Designs) {
      SeriesSpec series{.model = network.name, .policy = design.name, .measure = &percent_of_ideal};
      for (const int batch : network.batches) {
        const std::string model = fmt::format("{}-{}", network.name, batch);
        series.points.push_back({.x = static_cast<double>(batch),
                                 .label = fmt::format("batch {}", batch),
                                 .experiment = g10_experiment(model, design),
                                 .published = g10_figure_15(model, design.name)});
      }
      figure.series.push_back(std::move(series));
    }
  return figure;
}

FigureSpec g10_figure_16_spec() {
  FigureSpec figure{.id = "16",
                    .title = "G10 with less host memory",
                    .unit = "% of 256 GB",
                    .chart = ChartKind::lines,
                    .x_title = "host memory, GB",
                    .relative_to = "256 GB",
                    .note =
                        "The paper has execution times. It also has BERT with batches 384 and 640, ViT and ResNet152 "
                        "with 1536; of these no ideal time is published.",
                    .series = {}};
  for (const G10Network& network : g10_networks())
    for (const int batch : network.batches_of_figure_16) {
      const std::string model = fmt::format("{}-{}", network.name, batch);
      SeriesSpec series{
          .model = network.name, .policy = "G10", .part = fmt::format("batch {}", batch), .measure = &percent_of_ideal};
      for (const int gigabytes : kHostGigabytes)
        series.points.push_back({.x = static_cast<double>(gigabytes),
                                 .label = fmt::format("{} GB", gigabytes),
                                 .experiment = with_host(g10_experiment(model, kG10Designs[5]), gigabytes),
                                 .published = g10_figure_16(model, gigabytes)});
      figure.series.push_back(std::move(series));
    }
  return figure;
}

FigureSpec g10_figure_17_spec() {
  FigureSpec figure{.id = "17",
                    .title = "Three designs with less host memory",
                    .unit = "% of ideal",
                    .chart = ChartKind::lines,
                    .x_title = "host memory, GB",
                    .note =
                        "The paper has this as a drawing. Published values are those of figures 15 and 16: "
                        "FlashNeuron uses no host memory, and DeepUM+ has 128 GB there.",
                    .series = {}};
  for (const char* model : {"ViT-1024", "Inceptionv3-1280"})
    for (const G10Design& design : {kG10Designs[1], kG10Designs[2], kG10Designs[5]}) {
      SeriesSpec series{.model = model, .policy = design.name, .measure = &percent_of_ideal};
      for (const int gigabytes : kHostGigabytes)
        series.points.push_back({.x = static_cast<double>(gigabytes),
                                 .label = fmt::format("{} GB", gigabytes),
                                 .experiment = with_host(g10_experiment(model, design), gigabytes),
                                 .published = published(model, design, gigabytes)});
      figure.series.push_back(std::move(series));
    }
  return figure;
}

}  // namespace spillway
