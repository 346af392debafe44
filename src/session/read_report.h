#pragma once

#include "report/run_report.h"
#include "session/session.h"
#include "session/supervisor.h"

namespace spillway {

// What the hook has left in the session, as of the script's end, however that came.
RunReport read_report(const Session& session, const Supervised& supervised);

}  // namespace spillway
