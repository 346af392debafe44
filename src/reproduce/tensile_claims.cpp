#include <utility>

#include "reproduce/tensile.h"

namespace spillway {
namespace {

constexpr double kEqual = 0.005;  // what differs by half a percent is equal

// One over the other, each network: at least or at most 1.
StatementSpec beside(const std::string& one, const std::string& other, const std::string& part, Relation relation,
                     const std::string& at = "") {
  return {.what = part.empty() ? one + " / " + other : part + ", " + one + " / " + other,
          .policy = one,
          .over = other,
          .part = part,
          .at = at,
          .relation = relation,
          .bound = 1,
          .tolerance = kEqual};
}

// What is said to grow or fall must do so by more than a percent.
constexpr double kGrows = 101, kFalls = 99;

// The quotient with four jobs has grown from that with one, on average.
StatementSpec farther_ahead() {
  StatementSpec statement = beside("TENSILE", "Capuchin", "", Relation::at_least, "4 jobs");
  statement.models = Over::mean_of_models;
  statement.bound = 1.01;
  statement.tolerance = 0;
  return statement;
}

// As published, network by network.
StatementSpec as_published(const std::string& system, const std::string& part, double tolerance) {
  return {.what = part.empty() ? system : part + ", " + system,
          .policy = system,
          .part = part,
          .relation = Relation::near,
          .tolerance = tolerance};
}

StatementSpec bounded(const std::string& system, const std::string& at, Relation relation, double bound,
                      std::vector<std::string> only = {}) {
  return {.what = system,
          .policy = system,
          .at = at,
          .relation = relation,
          .bound = bound,
          .tolerance = bound == 100 ? kEqual : 0,
          .only = std::move(only)};
}

const char* const kJobsShare =
    "Jobs share the device's time here, and so each one's kernels take longer the more there are. A job's part of the "
    "link grows thin no faster than its need of it. The paper's framework runs each job in Python.";

// What leaves before the peak is at most what the link takes until then.
ReasonSpec slower_kernels(const std::string& system, const std::string& part) {
  return {.text =
              "The forward pass is the time in which tensors can leave before the peak. Kernels are estimates of "
              "PyTorch's here. So it is if they take three times as long, as those of the paper's own framework may",
          .policy = system,
          .part = part,
          .estimates_percent = 300};
}

std::vector<ClaimSpec> about_phases() {
  return {
      {.id = "update-helps",
       .figure = "T1",
       .claim = "Measured times make better plans than predicted ones.",
       .published = "EOR 1.07–1.48 after the update and 2.25–6.01 before it; MSR 0.32–0.56 and 0.27–0.52",
       .statements = {beside("updated", "cold start", "EOR", Relation::at_most),
                      beside("updated", "cold start", "MSR", Relation::at_least),
                      beside("updated", "cold start", "CBR", Relation::at_least)},
       .known = "Estimated times follow from operations and bytes, which networks learn easily."},
      {.id = "cold-start-is-the-peak",
       .figure = "T1",
       .claim = "The cold start's peak is that of the whole training.",
       .published = "the same MSR",
       .statements = {{.what = "MSR, TENSILE / cold start",
                       .policy = "TENSILE",
                       .over = "cold start",
                       .part = "MSR",
                       .relation = Relation::near,
                       .bound = 1,
                       .tolerance = 0.02}},
       .known = "Adam's states are made at the end of the first iteration here, so the peak comes later."},
      {.id = "cost-of-phases",
       .figure = "T1",
       .claim = "The phases take as long as the paper says.",
       .published = "network by network",
       .statements = {as_published("TENSILE", "EOR", 0.1), as_published("cold start", "EOR", 0.1),
                      as_published("updated", "EOR", 0.1)},
       .known = "TENSILE plans moves that no kernel waits for, so little time is lost if the plan's times are right. "
                "The paper's framework waits for the device after each operator, and its predictions take 1.4 to 2.5 "
                "s."},
      {.id = "cheap-first-iteration",
       .figure = "T2",
       .claim = "The first iteration costs less than Capuchin's, which runs without a plan.",
       .published = "1.25–1.47 times as long as without a policy, and 5.8–10.2 times",
       .statements = {beside("TENSILE", "Capuchin", "", Relation::at_most), as_published("less prediction", "", 0.1),
                      as_published("TENSILE", "", 0.1), as_published("Capuchin", "", 0.1)},
       .known =
           "To predict costs nothing here. Capuchin's first iteration moves the same bytes while kernels wait; the "
           "paper's framework adds its own time to each of these moves."},
  };
}

std::vector<ClaimSpec> about_one_job() {
  return {
      {.id = "best-benefit",
       .figure = "T3",
       .claim = "TENSILE saves most memory for the time that it costs.",
       .published = "CBR 0.16–0.44, Capuchin 0.14–0.17, vDNN 0.05–0.08",
       .statements = {beside("TENSILE", "Capuchin", "CBR", Relation::at_least),
                      beside("TENSILE", "vDNN", "CBR", Relation::at_least), as_published("TENSILE", "CBR", 0.1),
                      as_published("Capuchin", "CBR", 0.1), as_published("vDNN", "CBR", 0.1)},
       .reasons = {slower_kernels("TENSILE", "CBR")}},
      {.id = "saves-memory",
       .figure = "T3",
       .claim = "TENSILE saves 27 to 52 % of the memory.",
       .published = "26.7–51.5 %, network by network",
       .statements = {as_published("TENSILE", "MSR", 0.1)},
       .reasons = {slower_kernels("TENSILE", "MSR")}},
      {.id = "least-time",
       .figure = "T3",
       .claim = "TENSILE takes less time than Capuchin and vDNN.",
       .published = "1.2–1.6 times as long as without a policy, Capuchin 1.8–3.4, vDNN 1.8–2.6",
       .statements = {beside("TENSILE", "Capuchin", "EOR", Relation::at_most),
                      beside("TENSILE", "vDNN", "EOR", Relation::at_most)}},
      {.id = "prediction",
       .figure = "IV-A",
       .claim = "Networks predict how long operators take.",
       .published = "a mean squared error of 4.269, without a unit",
       .needs = "the unit, and measured times"},
  };
}

std::vector<ClaimSpec> about_several_jobs() {
  return {
      {.id = "scales",
       .figure = "6c",
       .claim = "The more jobs, the farther TENSILE is ahead of Capuchin.",
       .published = "the quotient of both CBR grows for most networks",
       .statements = {farther_ahead()},
       .known = kJobsShare},
      {.id = "capuchin-slows-down",
       .figure = "6b",
       .claim = "Capuchin's extra time grows with the jobs, and vDNN's falls.",
       .published = "as lines",
       .statements = {bounded("Capuchin", "4 jobs", Relation::at_least, kGrows),
                      bounded("vDNN", "4 jobs", Relation::at_most, kFalls)},
       .known = kJobsShare},
      {.id = "saving-drops-slowly",
       .figure = "6a",
       .claim = "What TENSILE saves drops slowly with the jobs.",
       .published = "as lines, for all but VGG-16",
       .statements = {bounded("TENSILE", "4 jobs", Relation::at_most, 100,
                              {"Inceptionv3", "Inceptionv4", "ResNet-50", "DenseNet-121"}),
                      bounded("TENSILE", "4 jobs", Relation::at_least, 75,
                              {"Inceptionv3", "Inceptionv4", "ResNet-50", "DenseNet-121"})},
       .known = kJobsShare},
      {.id = "passive-eviction",
       .figure = "2",
       .claim = "Capuchin waits for tensors for a third of the time, and longer with more jobs.",
       .published = "32.1 % of the time; more with two and three jobs",
       .statements = {{.what = "Capuchin",
                       .policy = "Capuchin",
                       .at = "1 job",
                       .relation = Relation::near,
                       .bound = 32.1,
                       .tolerance = 0.25},
                      {.what = "Capuchin",
                       .policy = "Capuchin",
                       .at = "3 jobs",
                       .relation = Relation::at_least,
                       .bound = 32.1,
                       .tolerance = 0}}},
      {.id = "mixed-jobs",
       .figure = "T4",
       .claim = "With five different networks TENSILE saves most, and costs least.",
       .published = "MSR 0.157, Capuchin 0.115, vDNN 0.058; EOR 1.16, 7.65, 1.63",
       .statements = {beside("TENSILE", "Capuchin", "MSR", Relation::at_least),
                      beside("TENSILE", "vDNN", "MSR", Relation::at_least),
                      beside("TENSILE", "Capuchin", "EOR", Relation::at_most),
                      beside("TENSILE", "vDNN", "EOR", Relation::at_most), as_published("TENSILE", "MSR", 0.1),
                      as_published("TENSILE", "EOR", 0.1)},
       .known =
           "vDNN saves more than published here, and kernels wait for that. Capuchin saves as much as it is given."},
  };
}

std::vector<ClaimSpec> about_batches() {
  ClaimSpec saving{.id = "larger-batches-save-more",
                   .figure = "7a",
                   .claim = "The larger the batch, the more is saved.",
                   .published = "for all but DenseNet with 32 and 64",
                   .statements = {}};
  for (const char* batch : {"batch 16", "batch 64"})
    saving.statements.push_back(
        bounded("TENSILE", batch, Relation::at_least, 100, {"VGG-16", "Inceptionv3", "Inceptionv4", "ResNet-50"}));
  return {saving,
          {.id = "vgg-gets-cheaper",
           .figure = "7b",
           .claim = "VGG-16 alone costs less with larger batches.",
           .published = "as lines",
           .statements = {bounded("TENSILE", "batch 64", Relation::at_most, kFalls, {"VGG-16"}),
                          bounded("TENSILE", "batch 64", Relation::at_least, 100,
                                  {"Inceptionv3", "Inceptionv4", "ResNet-50", "DenseNet-121"})}}};
}

}  // namespace

std::vector<ClaimSpec> tensile_claims() {
  std::vector<ClaimSpec> claims;
  for (auto part : {about_phases(), about_one_job(), about_several_jobs(), about_batches()})
    claims.insert(claims.end(), part.begin(), part.end());
  for (ClaimSpec& claim : claims) claim.id = "tensile." + claim.id;
  return claims;
}

}  // namespace spillway
