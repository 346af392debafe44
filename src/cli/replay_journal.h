#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace spillway {

inline constexpr std::size_t kEventsBefore = 5;  // by default

// Replays a journal, or the one in this folder, and prints what came of it, `before` events before a difference or the
// end among it. Fails if the decisions are not those of the run.
Result<int> replay_journal(const std::string& journal_or_folder, std::size_t before, bool json);

}  // namespace spillway
