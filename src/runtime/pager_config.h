#pragma once

#include <functional>
#include <memory>

#include "base/units.h"
#include "executor/online_policy.h"
#include "journal/journal_file.h"
#include "machines/cpu/cpu_device.h"
#include "plan/policy_traits.h"
#include "runtime/run_figures.h"

namespace spillway {

// How long the end may wait for the journal's disk.
inline constexpr Nanos kJournalPatience{2'000'000'000};

struct PagerConfig : CpuDeviceConfig {
  OnlineMaker online = nullptr;  // what moves ahead of kernels that no plan knows; null: nothing
  bool keeps_copies = false;     // see PolicyTraits
  // Whenever the counters may have changed; on the run loop's thread, which must not touch managed memory.
  std::function<void(const MemoryFigures&)> on_progress = {};
  // Where all that the executor is told and asks for is written; no path: nowhere.
  JournalOptions journal = {};
};

}  // namespace spillway
