#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/machine_model.h"

namespace CLI {
class App;
}

namespace spillway {

struct Gpu;

// A preset, a FILE.toml, or `this`: the machine that we run on, measured once with the SSD that holds the folder. That
// takes a while, which a terminal is told unless `quiet`.
Result<MachineModel> machine_by_name(const std::string& name, const std::string& ssd_folder, bool quiet = false);

// `this-gpu` is `this` with its first GPU, which is measured each time.
Result<MachineModel> machine_with(MachineModel machine, const Gpu& gpu, Bytes host);

// `this`, measured anew.
struct Calibration {
  MachineModel machine;
  std::string file;      // that keeps it
  std::string not_kept;  // or why none does
};
Result<Calibration> calibrate(const std::string& ssd_folder);

// By the keys that --set takes, times in seconds.
void add_values(nlohmann::ordered_json& object, const MachineModel& machine);

// --machine, --set and --ssd, which several commands share.
struct MachineOption {
  std::string name;
  std::string ssd_folder = "/var/tmp";
  std::vector<std::string> overrides;

  void add_to(CLI::App& command);
  std::string file() const;  // that is read; empty for presets and `this`
  Result<MachineModel> load() const;
};

}  // namespace spillway
