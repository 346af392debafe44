#pragma once

#include <string>
#include <vector>

#include "reproduce/paper.h"

namespace spillway {

// The parts of g10_paper(), each in a file of its own.
std::vector<FigureSpec> g10_figures();  // g10_figures.cpp
FigureSpec g10_figure_15_spec();        // g10_batch_figures.cpp
FigureSpec g10_figure_16_spec();
FigureSpec g10_figure_17_spec();
std::vector<ClaimSpec> g10_claims();  // g10_claims.cpp

// A network, the batches of figure 15, and those of figure 16 whose ideal times are published.
struct G10Network {
  std::string name, folder;  // in figures, in the artifact
  std::vector<int> batches, batches_of_figure_16;
};
const std::vector<G10Network>& g10_networks();

std::vector<PaperModel> g10_models();               // those of figure 11
std::vector<PaperModel> g10_by_roofline();          // the same, of traces with the times of a roofline
PaperModel g10_model(const std::string& id);        // "BERT-256"
std::string g10_batch_of(const PaperModel& model);  // the id without what says where its times are from

}  // namespace spillway
