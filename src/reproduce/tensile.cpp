#include "reproduce/tensile.h"

#include <fmt/format.h>

#include <utility>

#include "reproduce/tensile_published.h"

namespace spillway {
namespace {

constexpr int kBatch = 16;  // of all but figure 7

}  // namespace

std::vector<int> tensile_batches() { return {4, 8, kBatch, 32, 64}; }

std::string tensile_model(const std::string& network, int batch) {
  return batch == kBatch ? network : fmt::format("{}-batch-{}", network, batch);
}

Paper tensile_paper() {
  std::vector<PaperModel> models;
  for (const int batch : {kBatch, 4, 8, 32, 64})
    for (const std::string_view network : tensile_network_names()) {
      const std::string name = tensile_model(std::string(network), batch);
      models.push_back({.id = name, .folder = name});
    }
  return {.name = "tensile",
          .title =
              "TENSILE: A Tensor Granularity Dynamic GPU Memory Scheduling Method Toward Multiple Dynamic "
              "Workloads System (TKDE 2023)",
          .source = "the paper's text and tables",
          .machine = "a6000",
          .models = std::move(models),
          .figures = tensile_figures(),
          .claims = tensile_claims()};
}

}  // namespace spillway
