#pragma once

#include <string>

#include "trace/format.h"

namespace spillway {

// What `spillway show` prints of a trace: for people, and for programs.
std::string show_table(const LoadedTrace& loaded);
std::string show_json(const LoadedTrace& loaded);

}  // namespace spillway
