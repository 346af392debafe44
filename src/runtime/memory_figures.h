#pragma once

#include "machines/real/real_machine.h"
#include "runtime/run_figures.h"

namespace spillway {

// So far. Any thread.
MemoryFigures figures_of(const RealMachine& machine);

}  // namespace spillway
