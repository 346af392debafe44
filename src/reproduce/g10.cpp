#include "reproduce/g10.h"

namespace spillway {

std::vector<PaperModel> g10_models() {
  return {{"BERT-256", "BERT_Base-256"},
          {"ViT-1280", "VIT-1280"},
          {"Inceptionv3-1536", "Inceptionv3-1536"},
          {"ResNet152-1280", "ResNet152-1280"},
          {"SENet154-1024", "SENet154-1024"}};
}

Paper g10_paper() {
  return {.name = "g10",
          .title =
              "G10: Enabling An Efficient Unified GPU Memory and Storage Architecture with Smart Tensor Migrations "
              "(MICRO 2023)",
          .source = "the paper's text, and the expected results of its public artifact",
          .models = g10_models(),
          .figures = g10_figures(),
          .claims = g10_claims()};
}

}  // namespace spillway
