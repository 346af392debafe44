#pragma once

#include "base/result.h"
#include "base/units.h"
#include "hook/pager/pager.h"

namespace spillway {

// Pager::check() in a process of its own, since a disk that does not answer may stop for ever whoever asks it: after
// `limit` (zero: never) that is an error. Ours must be the only thread.
Result<Pager::Found> try_pager(const PagerConfig& config, Nanos limit);

}  // namespace spillway
