#pragma once

#include <functional>
#include <string>

#include "journal/record.h"

namespace spillway {

// For tests: the same journal after `change`, which may look at each record and alter it.
std::string rewritten(const std::string& journal, const std::function<void(Record&)>& change);

}  // namespace spillway
