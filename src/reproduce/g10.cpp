#include "reproduce/g10.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway {
namespace {

const std::string kByRoofline = ", roofline";

std::vector<PaperModel> all_models() {
  std::vector<PaperModel> models = g10_models();
  for (const G10Network& network : g10_networks())
    for (const int batch : network.batches) {
      PaperModel model{.id = fmt::format("{}-{}", network.name, batch),
                       .folder = fmt::format("{}-{}", network.folder, batch)};
      if (std::ranges::find(models, model.id, &PaperModel::id) == models.end()) models.push_back(std::move(model));
    }
  return models;
}

}  // namespace

const std::vector<G10Network>& g10_networks() {
  static const std::vector<G10Network> networks{
      {"BERT", "BERT_Base", {128, 256, 512, 768, 1024}, {256, 512}},
      {"ViT", "VIT", {256, 512, 768, 1024, 1280}, {768, 1024, 1280}},
      {"Inceptionv3", "Inceptionv3", {512, 768, 1024, 1280, 1536, 1792}, {512, 1024, 1280, 1536}},
      {"ResNet152", "ResNet152", {256, 512, 768, 1024, 1280}, {768, 1024, 1280}},
      {"SENet154", "SENet154", {256, 512, 768, 1024}, {256, 512, 768, 1024}},
  };
  return networks;
}

std::vector<PaperModel> g10_models() {
  return {{"BERT-256", "BERT_Base-256"},
          {"ViT-1280", "VIT-1280"},
          {"Inceptionv3-1536", "Inceptionv3-1536"},
          {"ResNet152-1280", "ResNet152-1280"},
          {"SENet154-1024", "SENet154-1024"}};
}

std::vector<PaperModel> g10_by_roofline() {
  std::vector<PaperModel> models = g10_models();
  for (PaperModel& model : models) model = {.id = model.id + kByRoofline, .folder = "", .unscaled = model.id};
  return models;
}

PaperModel g10_model(const std::string& id) {
  const std::vector<PaperModel> models = all_models();
  return *std::ranges::find(models, id, &PaperModel::id);
}

std::string g10_batch_of(const PaperModel& model) { return model.unscaled.empty() ? model.id : model.unscaled; }

Paper g10_paper() {
  std::vector<PaperModel> models = all_models();
  for (PaperModel& model : g10_by_roofline()) models.push_back(std::move(model));
  return {.name = "g10",
          .title =
              "G10: Enabling An Efficient Unified GPU Memory and Storage Architecture with Smart Tensor Migrations "
              "(MICRO 2023)",
          .source = "the paper's text, and the expected results of its public artifact",
          .models = std::move(models),
          .figures = g10_figures(),
          .claims = g10_claims()};
}

}  // namespace spillway
