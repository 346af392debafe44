#pragma once

#include <string>

#include "reproduce/reproduction.h"

namespace spillway {

// For programs: docs/formats/report.md has the keys.
std::string to_json(const Reproduction& reproduction);

}  // namespace spillway
