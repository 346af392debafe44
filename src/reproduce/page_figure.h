#pragma once

#include <string>
#include <vector>

#include "reproduce/figures.h"

namespace spillway {

// The figure's panels and their legend, as HTML. `designs` are all of the paper, so that each has its colour
// everywhere.
std::string panels_of(const FigureResult& figure, const std::vector<std::string>& designs);

// All values of the figure, as a table of HTML.
std::string values_of(const FigureResult& figure);

}  // namespace spillway
