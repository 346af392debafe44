#include <fmt/format.h>

#include <utility>

#include "reproduce/deepum.h"

namespace spillway {
namespace {

constexpr double kSame = 0.005;  // two systems within half a percent are equal

StatementSpec not_below(const std::string& system, const std::string& other, Over models) {
  return {.what = other.empty() ? system : system + " / " + other,
          .policy = system,
          .over = other,
          .models = models,
          .relation = Relation::at_least,
          .bound = 1,
          .tolerance = kSame};
}

// As much as what was published of the same models.
StatementSpec by_as_much(const std::string& system, const std::string& other, Over models) {
  StatementSpec statement = not_below(system, other, models);
  statement.relation = Relation::near;
  statement.bound = std::nullopt;
  statement.tolerance = 0.1;
  return statement;
}

// Times are estimates, of which some miss by a quarter.
StatementSpec within_a_quarter(const std::string& system) {
  StatementSpec statement = by_as_much(system, "", Over::each_model);
  statement.tolerance = 0.25;
  return statement;
}

std::vector<std::string> models_with(const std::string& beginning) {
  std::vector<std::string> names;
  for (const PaperModel& model : deepum_trained())
    if (model.id.starts_with(beginning)) names.push_back(model.id);
  return names;
}

// The naive system of the figure without PyTorch's pool, in the place of the one with it.
ReasonSpec pool_of_um(std::vector<std::string> only = {}) {
  return {.text =
              "What goes round in PyTorch's pool always misses here, since least recently migrated blocks leave. "
              "Without the pool only what is too much comes back",
          .policy = "DeepUM",
          .base_instead = "uvm",
          .only = std::move(only)};
}

// What else lies on the card: its context, and the work space of operators.
ReasonSpec less_memory() {
  return {
      .text =
          "The paper says that 3 % of what BERT base uses with batch 29 is too much. Here all of it fits. It is 3 % "
          "if the device has 27.2 GiB; unified memory is without a pool here",
      .policy = "DeepUM",
      .base_instead = "uvm",
      .overrides = {"device.memory=27.2GiB"},
      .only = models_with("BERT-B")};
}

std::vector<ClaimSpec> about_speed() {
  return {
      {.id = "faster-than-um",
       .figure = "9a",
       .claim = "DeepUM is faster than unified memory without prefetching.",
       .published = "3.06×, the mean of 23 models and batches; each is faster",
       .statements = {not_below("DeepUM", "", Over::each_model), not_below("DeepUM", "", Over::mean_of_models),
                      by_as_much("DeepUM", "", Over::mean_of_models), by_as_much("DeepUM", "", Over::each_model)},
       .reasons = {pool_of_um(), less_memory()}},
      {.id = "faster-than-lms",
       .figure = "9a",
       .claim = "DeepUM is faster than LMS.",
       .published = "1.11×: 3.06 / 2.75, means over different models. Of the eleven that LMS can run it is 1.32×",
       .statements = {not_below("DeepUM", "LMS", Over::mean_of_models),
                      by_as_much("DeepUM", "LMS", Over::mean_of_models)},
       .known =
           "LMS moves whole tensors here, too. That it returns cached memory to the driver, and waits for that, is not "
           "simulated."},
      {.id = "dlrm-gains-little",
       .figure = "9a",
       .claim = "DLRM gains least, since its lookups are irregular.",
       .published = "1.20–1.32×",
       .statements = {{.what = "DeepUM",
                       .policy = "DeepUM",
                       .relation = Relation::at_most,
                       .bound = 1.32,
                       .tolerance = 0.1,
                       .only = models_with("DLRM")}},
       .reasons = {pool_of_um(models_with("DLRM"))},
       .known = "An iteration takes 10 s and more in the paper, and below a second by estimates: the device computes "
                "little. "
                "What takes the time there is not in a trace."},
      {.id = "as-long-as-published",
       .figure = "9b",
       .claim = "Iterations take as long as the paper says.",
       .published = "model by model",
       .statements = {within_a_quarter("DeepUM"), within_a_quarter("UM"), within_a_quarter("LMS")},
       .known = "Kernels' times are estimates. The paper names neither the lengths of its texts nor its optimizers."},
      {.id = "each-step-helps",
       .figure = "10",
       .claim = "Prefetches save most of the time, then pre-eviction, then invalidation.",
       .published = "45.6, 63.7 and 66.7 % of the time saved, on average",
       .statements =
           [] {
             std::vector<StatementSpec> statements;
             for (const auto& [step, left] :
                  {std::pair("Prefetching", 54.4), std::pair("+Preeviction", 36.3), std::pair("+Invalidate", 33.3)})
               statements.push_back({.what = step,
                                     .policy = step,
                                     .models = Over::mean_of_models,
                                     .relation = Relation::near,
                                     .bound = left,
                                     .tolerance = 0.1});
             for (const auto& [step, before] :
                  {std::pair("Prefetching", "UM"), std::pair("+Preeviction", "Prefetching"),
                   std::pair("+Invalidate", "+Preeviction")})
               statements.push_back({.what = fmt::format("{} / {}", step, before),
                                     .policy = step,
                                     .over = before,
                                     .models = Over::mean_of_models,
                                     .relation = Relation::at_most,
                                     .bound = 1,
                                     .tolerance = kSame});
             return statements;
           }(),
       .known = "Unified memory with PyTorch's pool is far slower here than in the paper, so that less of its time is "
                "left."},
  };
}

std::vector<ClaimSpec> about_parameters() {
  ClaimSpec ahead{.id = "look-ahead",
                  .figure = "11a",
                  .claim = "To look 32 kernels ahead is best.",
                  .published = "as bars",
                  .known = "Not found. To look farther than 32 kernels ahead does no harm here."};
  for (const char* other : {"N=8", "N=16", "N=64", "N=128"})
    ahead.statements.push_back(not_below("N=32", other, Over::mean_of_models));
  ClaimSpec shape{.id = "table-shape",
                  .figure = "12",
                  .claim = "Block tables of 2048 rows with two ways and four successors are best.",
                  .published = "Config9 of table 6, on average",
                  .known = "All shapes are as fast as the others here, also that of 128 rows."};
  for (int other = 0; other <= 12; ++other)
    if (other != 9)
      shape.statements.push_back(not_below("Config9", fmt::format("Config{}", other), Over::mean_of_models));
  // If all are equal, nothing is best.
  shape.statements.front().bound = 1 + kSame;
  shape.statements.front().tolerance = 0;
  return {ahead, shape};
}

// Of each model: it fits into `all` gigabytes, and needs about as many as the host has.
void add_peaks(ClaimSpec& claim, const std::vector<PaperModel>& models, double host, double all) {
  for (const PaperModel& model : models)
    for (const Relation relation : {Relation::at_most, Relation::near})
      claim.statements.push_back({.what = "peak",
                                  .policy = "",
                                  .part = "peak",
                                  .relation = relation,
                                  .bound = relation == Relation::near ? host : all,
                                  .tolerance = relation == Relation::near ? 0.2 : 0,
                                  .only = {model.id}});
}

std::vector<ClaimSpec> about_memory() {
  ClaimSpec largest{
      .id = "largest-batch",
      .figure = "T3",
      .claim = "DeepUM can run what needs nearly all of the host's memory.",
      .published = "batches whose peak is almost that of the host, 512 GB",
      .known =
          "The paper measures what the system has given away, and a trace has what tensors need. It does not "
          "say how long its texts are."};
  add_peaks(largest, deepum_largest(), 512, 546);
  return {
      largest,
      {.id = "few-faults",
       .figure = "T5b",
       .claim = "Few of the page faults are left.",
       .published = "at most 1.8 % of those of unified memory",
       .statements =
           {{.what = "DeepUM", .policy = "DeepUM", .relation = Relation::at_most, .bound = 1.8, .tolerance = 0.01}},
       .known = "Most faults that are left are on blocks whose prefetch waits for its turn: links are too slow, not "
                "predictions wrong."},
      {.id = "as-many-faults",
       .figure = "T5a",
       .claim = "Unified memory faults as often as the paper says.",
       .published = "model by model",
       .statements =
           {{.what = "UM", .policy = "UM", .relation = Relation::near, .bound = std::nullopt, .tolerance = 0.2}},
       .reasons = {{.text = "Without PyTorch's pool dead bytes do not come back", .policy = "UM", .instead = "uvm"}}},
      {.id = "table-size",
       .figure = "T4",
       .claim = "The tables are small.",
       .published = "13 MB (DLRM) to 348 MB (GPT-2 XL)",
       .statements = {{.what = "tables", .policy = "", .part = "tables", .relation = Relation::near, .tolerance = 0.25},
                      {.what = "tables",
                       .policy = "",
                       .part = "tables",
                       .relation = Relation::at_most,
                       .bound = 348,
                       .tolerance = 0.25}},
       .known =
           "A table's size follows from how many execution IDs there are. In the paper they follow from names and "
           "arguments; here each kernel of an iteration has one. Those of an optimizer are many, and each is small."},
      {.id = "lms-largest-batch",
       .figure = "T3",
       .claim = "LMS can run far smaller batches than DeepUM.",
       .published = "GPT-2 XL and L 3, BERT large 14, BERT base 29, DLRM 128K, ResNet200 and ResNet152 1536",
       .needs = "a model of how memory fragments: by its bytes alone LMS could run more"},
      {.id = "energy",
       .figure = "9c",
       .claim = "DeepUM needs less energy than unified memory.",
       .published = "65 % less, LMS 68 % less",
       .needs = "a GPU and a power meter"},
  };
}

std::vector<ClaimSpec> about_small_card() {
  ClaimSpec largest_on_16_gb{
      .id = "largest-batch-16",
      .figure = "T7",
      .claim = "With 128 GB of host memory DeepUM can run these batches, and they need nearly all of it.",
      .published = "ResNet200 with CIFAR-10 6.4K, BERT large with CoLA 64, DCGAN 3.5K, MobileNet 5.1K",
      .known =
          "The paper does not say how large its images are, and how long its texts. With images of 32 pixels, or "
          "64, and texts of 128 words these batches need far less than 128 GB, and larger ones would run."};
  add_peaks(largest_on_16_gb, deepum_largest_on_16_gb(), 128, 145);
  std::vector<StatementSpec> faster_where_all_do_not_fit;
  for (const char* other : {"vDNN", "Capuchin"}) {
    faster_where_all_do_not_fit.push_back(not_below("DeepUM", other, Over::each_model));
    faster_where_all_do_not_fit.back().only = {"ResNet200-CIFAR-6.4K", "BERT-L-CoLA-64"};
  }
  return {
      {.id = "beside-tensorflow",
       .figure = "13",
       .claim = "DeepUM is faster than vDNN and Capuchin.",
       .published = "as bars; also faster than AutoTM and SwapAdvisor, and as fast as Sentinel",
       .statements = faster_where_all_do_not_fit,
       .known = "Capuchin's plan knows when each tensor is used next, and its moves hide behind kernels. DeepUM learns "
                "this from page faults, and part of what it prefetches comes late. What the others cost on TensorFlow "
                "is not simulated. DCGAN and MobileNet fit the device."},
      {.id = "larger-than-tensorflow",
       .figure = "13",
       .claim = "vDNN and Capuchin cannot run DeepUM's largest batches.",
       .published = "largest batches: Capuchin 5.9K, 27, 2.7K, 3.2K; vDNN 4.2K, none, 1.4K, 1.2K; DeepUM 6.4K, 64, "
                    "3.5K, 5.1K",
       .statements = {{.what = "vDNN", .policy = "vDNN", .relation = Relation::fails},
                      {.what = "Capuchin", .policy = "Capuchin", .relation = Relation::fails}},
       .known = "What whole tensors need of the device fits it here. What TensorFlow takes besides, and fragments, are "
                "not simulated."},
      largest_on_16_gb,
  };
}

}  // namespace

std::vector<ClaimSpec> deepum_claims() {
  std::vector<ClaimSpec> claims;
  for (auto part : {about_speed(), about_parameters(), about_memory(), about_small_card()})
    claims.insert(claims.end(), part.begin(), part.end());
  for (ClaimSpec& claim : claims) claim.id = "deepum." + claim.id;
  return claims;
}

}  // namespace spillway
