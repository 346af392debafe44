#pragma once

#include <string>

#include "trace/trace.h"

namespace spillway {

// "Kernel times are estimates (roofline, a100).\n" where they are, else nothing. Whatever people read of a trace's
// times has it, so that nobody takes them for measured; reports for programs have `estimated_times` (json.h).
std::string estimate_note(const Trace& trace);

}  // namespace spillway
