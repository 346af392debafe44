#pragma once

#include <string>

#include "journal/replay.h"

namespace spillway {

// What came of replaying this file: a few lines for people, and one object for programs.
std::string replay_table(const Replay& replay, const std::string& file);
std::string replay_json(const Replay& replay, const std::string& file);
// Of one that is not equal: what to say on stderr.
std::string replay_error(const Replay& replay, const std::string& file);

}  // namespace spillway
