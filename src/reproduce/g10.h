#pragma once

#include <vector>

#include "reproduce/paper.h"

namespace spillway {

// The parts of g10_paper(), each in a file of its own.
std::vector<PaperModel> g10_models();
std::vector<FigureSpec> g10_figures();  // g10_figures.cpp
std::vector<ClaimSpec> g10_claims();    // g10_claims.cpp

}  // namespace spillway
