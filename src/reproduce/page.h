#pragma once

#include <string>

#include "reproduce/reproduction.h"

namespace spillway {

// One page of HTML for a paper that needs nothing else: no script, no other file. Each figure as it is drawn in papers,
// ours beside what was published, with its claims, the commands that print them, and all values as a table.
std::string to_page(const Reproduction& reproduction);

}  // namespace spillway
