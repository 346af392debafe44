#pragma once

#include "machines/cpu/cpu_machine.h"
#include "runtime/run_figures.h"

namespace spillway {

// So far. Any thread.
MemoryFigures figures_of(const CpuMachine& machine);

}  // namespace spillway
