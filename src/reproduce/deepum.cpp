#include "reproduce/deepum.h"

#include <algorithm>
#include <utility>

#include "reproduce/deepum_published.h"

namespace spillway {
namespace {

// Nobody has published traces, so that a file is called as its model is.
std::vector<PaperModel> named(const std::vector<std::string_view>& names) {
  std::vector<PaperModel> models;
  for (const std::string_view name : names) models.push_back({.id = std::string(name), .folder = std::string(name)});
  return models;
}

}  // namespace

std::vector<PaperModel> deepum_trained() { return named(deepum_model_names()); }

std::vector<PaperModel> deepum_largest() {
  return named(
      {"GPT-2-XL-16", "GPT-2-L-24", "BERT-L-192", "BERT-B-256", "DLRM-512K", "ResNet200-2304", "ResNet152-1792"});
}

std::vector<PaperModel> deepum_largest_on_16_gb() {
  return named({"ResNet200-CIFAR-6.4K", "BERT-L-CoLA-64", "DCGAN-3.5K", "MobileNet-5.1K"});
}

Paper deepum_paper() {
  std::vector<PaperModel> models = deepum_trained();
  for (const PaperModel& model : deepum_largest_on_16_gb()) models.push_back(model);
  for (const PaperModel& model : deepum_largest())
    if (std::ranges::find(models, model.id, &PaperModel::id) == models.end()) models.push_back(model);
  return {.name = "deepum",
          .title = "DeepUM: Tensor Migration and Prefetching in Unified Memory (ASPLOS 2023)",
          .source = "the paper's text and tables; figure 9(b) has its times as numbers",
          .machine = "v100-32",
          .models = std::move(models),
          .figures = deepum_figures(),
          .claims = deepum_claims()};
}

}  // namespace spillway
