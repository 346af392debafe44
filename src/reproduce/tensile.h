#pragma once

#include <string>
#include <vector>

#include "reproduce/paper.h"

namespace spillway {

// The parts of tensile_paper(), each in a file of its own.
inline constexpr const char* kFiveNetworks = "five networks";      // that share the device, in table IV
std::vector<int> tensile_batches();                                // of figure 7
std::string tensile_model(const std::string& network, int batch);  // its trace: "VGG-16-batch-4"; "VGG-16" of 16
std::vector<FigureSpec> tensile_figures();                         // tensile_figures.cpp
std::vector<ClaimSpec> tensile_claims();                           // tensile_claims.cpp

}  // namespace spillway
