#pragma once

#include <string>

#include "reproduce/reproduction.h"

namespace spillway {

// For a terminal: figure by figure a table, ours above what was published, then the claims with their verdicts.
std::string to_table(const Reproduction& reproduction);

}  // namespace spillway
