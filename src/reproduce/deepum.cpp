#include "reproduce/deepum.h"

#include <algorithm>
#include <utility>

#include "reproduce/deepum_published.h"

namespace spillway {
namespace {

// Nobody has published traces, so that a file is called as its model is.
PaperModel named(std::string_view name) { return {.id = std::string(name), .folder = std::string(name)}; }

}  // namespace

std::vector<PaperModel> deepum_trained() {
  std::vector<PaperModel> models;
  for (const std::string_view name : deepum_model_names()) models.push_back(named(name));
  return models;
}

std::vector<PaperModel> deepum_largest() {
  std::vector<PaperModel> models;
  for (const std::string_view name :
       {"GPT-2-XL-16", "GPT-2-L-24", "BERT-L-192", "BERT-B-256", "DLRM-512K", "ResNet200-2304", "ResNet152-1792"})
    models.push_back(named(name));
  return models;
}

std::vector<PaperModel> deepum_largest_on_16_gb() {
  std::vector<PaperModel> models;
  for (const std::string_view name : {"ResNet200-CIFAR-6.4K", "BERT-L-CoLA-64", "DCGAN-3.5K", "MobileNet-5.1K"})
    models.push_back(named(name));
  return models;
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
