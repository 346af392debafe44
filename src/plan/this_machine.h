#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "plan/machine_model.h"

namespace spillway {

// Measures the machine that we run on, its SSD in that folder. Takes seconds.
using Probe = std::function<Result<MachineModel>(const std::string& ssd_folder)>;

struct ThisMachine {
  std::string ssd_folder;
  std::string cache_folder;  // empty: measured anew each time
};

// "$XDG_CACHE_HOME/spillway" or "$HOME/.cache/spillway"; empty where neither is set.
std::string user_cache_folder();

// The file that it is kept in, with a section for each SSD. Needs a cache folder.
std::string kept_in(const ThisMachine& options);

// The machine named "this" with the SSD that holds the folder: what the probe measured once, kept in a file that can be
// read and edited. A kept file that cannot be read is measured anew; one that cannot be written is no error.
Result<MachineModel> this_machine(const ThisMachine& options, const Probe& probe);

// The same, whatever is kept.
struct Measured {
  MachineModel machine;
  std::string not_kept;  // why, if it is not
};
Result<Measured> measure_this_machine(const ThisMachine& options, const Probe& probe);

}  // namespace spillway
