#include "report/estimates.h"

#include <fmt/format.h>

#include "report/table.h"

namespace spillway {

std::string estimate_note(const Trace& trace) {
  return trace.estimated.empty() ? "" : fmt::format("Kernel times are estimates ({}).\n", printable(trace.estimated));
}

}  // namespace spillway
