#include "reproduce/paper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "plan/machine_file.h"
#include "policies/policies.h"
#include "reproduce/deepum_published.h"
#include "reproduce/g10_published.h"
#include "reproduce/reproduction.h"
#include "reproduce/tensile_published.h"

namespace spillway {
namespace {

// What no compiler checks of a paper's data.
void check_experiment(const Experiment& experiment) {
  EXPECT_TRUE(policy_by_name(experiment.policy)) << experiment.policy;
  auto machine = load_machine(experiment.machine);
  ASSERT_TRUE(machine) << experiment.machine;
  for (const std::string& change : experiment.overrides) EXPECT_TRUE(apply_override(*machine, change)) << change;
  EXPECT_TRUE(check_machine(*machine));
}

bool has_series(const FigureSpec& figure, const std::string& policy, const std::string& part, const std::string& at) {
  return std::ranges::any_of(figure.series, [&](const SeriesSpec& series) {
    return series.policy == policy && series.part == part &&
           (at.empty() || std::ranges::any_of(series.points, [&](const PointSpec& one) { return one.label == at; }));
  });
}

void check_claim(const ClaimSpec& claim, const Paper& paper) {
  SCOPED_TRACE(claim.id);
  EXPECT_FALSE(claim.claim.empty() || claim.published.empty());
  EXPECT_FALSE(claim.statements.empty() && claim.needs.empty());
  if (claim.statements.empty()) return;
  const auto figure = std::ranges::find(paper.figures, claim.figure, &FigureSpec::id);
  ASSERT_NE(figure, paper.figures.end()) << claim.figure;
  for (const StatementSpec& one : claim.statements) {
    EXPECT_TRUE(has_series(*figure, one.policy, one.part, one.at)) << one.what;
    if (!one.over.empty()) {
      EXPECT_TRUE(has_series(*figure, one.over, one.over_part.empty() ? one.part : one.over_part, one.at)) << one.what;
    }
    for (const std::string& model : one.only)
      EXPECT_NE(std::ranges::find(figure->series, model, &SeriesSpec::model), figure->series.end()) << model;
  }
  EXPECT_TRUE(claim.reasons.empty() || figure->relative_to.empty()) << "a reason is not in percent of another point";
  for (const ReasonSpec& one : claim.reasons) {
    EXPECT_TRUE(has_series(*figure, one.policy, one.part, one.at)) << one.text;
    check_experiment({.model = "", .policy = one.instead.empty() ? "uvm" : one.instead, .overrides = one.overrides});
  }
}

TEST(Papers, NameWhatThereIs) {
  for (const PaperEntry& entry : kPapers) {
    const Paper paper = entry.paper();
    EXPECT_EQ(paper.name, entry.name);
    std::set<std::string> ids;
    for (const FigureSpec& figure : paper.figures) {
      EXPECT_TRUE(ids.insert(figure.id).second) << figure.id;
      for (const SeriesSpec& series : figure.series)
        for (const PointSpec& point : series.points) {
          check_experiment(point.experiment);
          for (const std::string& model : models_of(point.experiment))
            EXPECT_NE(std::ranges::find(paper.models, model, &PaperModel::id), paper.models.end()) << model;
        }
    }
    for (const ClaimSpec& claim : paper.claims) {
      EXPECT_TRUE(ids.insert(claim.id).second) << claim.id;
      check_claim(claim, paper);
    }
  }
}

TEST(Papers, AnUnknownOneNamesThoseThereAre) {
  const auto paper = paper_by_name("g11");
  ASSERT_FALSE(paper);
  EXPECT_EQ(paper.error().code, Errc::usage);
  EXPECT_NE(paper.error().message.find("g10"), std::string::npos);
}

// Means that the paper's text has, of the numbers that the artifact has.
TEST(G10Published, AgreesWithThePapersText) {
  double g10 = 1, flashneuron = 1;
  for (const char* model : {"BERT-256", "ViT-1280", "Inceptionv3-1536", "ResNet152-1280", "SENet154-1024"})
    g10 *= g10_figure_11(model, "G10").value();
  for (const char* model : {"BERT-256", "ResNet152-1280", "SENet154-1024"})
    flashneuron *= g10_figure_11(model, "FlashNeuron").value();
  EXPECT_NEAR(std::pow(g10, 1.0 / 5), 90.3, 0.1);
  EXPECT_NEAR(std::pow(flashneuron, 1.0 / 3), 62.5, 0.1);
  EXPECT_FALSE(g10_figure_11("ViT-1280", "FlashNeuron")) << "it fails";
  EXPECT_NEAR(g10_figure_18("ViT-1280", "DeepUM+", 32).value(), 75.3, 0.1);
  EXPECT_NEAR(g10_figure_19("ViT-1280", 0).value(), g10_figure_11("ViT-1280", "G10").value(), 0.01);
  double sum = 0;
  for (const char* part : {"computing", "overlapped", "stalled"}) sum += g10_figure_12("BERT-256", "G10", part).value();
  EXPECT_NEAR(sum, 100, 1e-9);
}

TEST(DeepumPublished, AgreesWithThePapersText) {
  double faster = 0, than_lms = 0;
  std::size_t with_lms = 0;
  for (const std::string_view model : deepum_model_names()) {
    const double um = deepum_figure_9b(model, "UM").value(), deepum = deepum_figure_9b(model, "DeepUM").value();
    faster += std::log(um / deepum);
    if (const auto lms = deepum_figure_9b(model, "LMS")) {
      than_lms += std::log(um / *lms);
      ++with_lms;
    }
    EXPECT_LE(deepum_table_5(model, "DeepUM").value(), 0.0181 * deepum_table_5(model, "UM").value()) << model;
  }
  EXPECT_EQ(deepum_model_names().size(), 23u);
  EXPECT_NEAR(std::exp(faster / 23), 3.06, 0.01);
  EXPECT_NEAR(std::exp((faster / 23) - (than_lms / static_cast<double>(with_lms))), 1.11, 0.01);
  EXPECT_FALSE(deepum_figure_9b("BERT-L-18", "LMS")) << "it fails";
}

TEST(TensilePublished, AgreesWithThePapersText) {
  ASSERT_EQ(tensile_network_names().size(), 5u);
  double most = 0, least = 1;
  for (const std::string_view network : tensile_network_names()) {
    for (const char* system : {"vDNN", "Capuchin", "TENSILE"}) {
      const double saving = tensile_table_3(network, system, TensileMeasure::memory_saving).value();
      const double overhead = tensile_table_3(network, system, TensileMeasure::extra_overhead).value();
      EXPECT_NEAR(tensile_table_3(network, system, TensileMeasure::cost_benefit).value(), saving / overhead, 1.1e-4);
    }
    const double saving = tensile_table_3(network, "TENSILE", TensileMeasure::memory_saving).value();
    EXPECT_EQ(tensile_table_1(network, "TENSILE", TensileMeasure::memory_saving), saving) << "both tables have it";
    EXPECT_LT(tensile_table_2(network, "TENSILE").value(), tensile_table_2(network, "Capuchin").value());
    most = std::max(most, saving);
    least = std::min(least, saving);
  }
  EXPECT_EQ(least, 0.2670);
  EXPECT_EQ(most, 0.5154);
  EXPECT_EQ(tensile_table_4("TENSILE", TensileMeasure::extra_overhead), 1.1589);
}

}  // namespace
}  // namespace spillway
