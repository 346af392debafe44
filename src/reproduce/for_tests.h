#pragma once

#include <optional>
#include <string>

#include "reproduce/figures.h"

namespace spillway {

// A figure of designs A, B, ... with one value a model, made up.
class FigureForTests {
 public:
  FigureForTests() { figure_.spec = {.id = "1", .title = "throughput", .unit = "% of ideal", .series = {}}; }
  FigureForTests& add(const std::string& model, const std::string& policy, std::optional<double> ours,
                      std::optional<double> published = {}, const std::string& label = "") {
    SeriesSpec spec{.model = model, .policy = policy, .measure = &percent_of_ideal};
    spec.points = {{.label = label, .experiment = {.model = model, .policy = policy}, .published = published}};
    PointResult point{.label = label, .ours = ours, .published = published, .infeasible = !ours};
    figure_.spec.series.push_back(spec);
    figure_.series.push_back({.spec = std::move(spec), .points = {std::move(point)}, .curve = {}});
    return *this;
  }
  const FigureResult& result() const { return figure_; }

 private:
  FigureResult figure_;
};

}  // namespace spillway
