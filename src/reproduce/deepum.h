#pragma once

#include <vector>

#include "reproduce/paper.h"

namespace spillway {

// The parts of deepum_paper(), each in a file of its own.
std::vector<PaperModel> deepum_trained();           // of figure 9, in its order: "BERT-L-14"
std::vector<PaperModel> deepum_largest();           // of table 3
std::vector<PaperModel> deepum_largest_on_16_gb();  // of table 7
std::vector<FigureSpec> deepum_figures();           // deepum_figures.cpp
std::vector<ClaimSpec> deepum_claims();             // deepum_claims.cpp

}  // namespace spillway
