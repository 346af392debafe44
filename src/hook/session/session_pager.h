#pragma once

#include "hook/pager/pager.h"
#include "hook/session/session.h"

namespace spillway {

// The pager that a session asks for.
PagerConfig pager_config(const SessionConfig& wanted);

}  // namespace spillway
