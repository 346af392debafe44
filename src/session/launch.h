#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "session/shared_session.h"
#include "session/supervisor.h"

namespace spillway {

// Starts the command with the hook beside this program, and returns when it has ended. What is wrong with starting or
// ending it is said on stderr.
Result<Supervised> launch(SharedSession& session, const std::vector<std::string>& command, const Watch& watch = {});

}  // namespace spillway
