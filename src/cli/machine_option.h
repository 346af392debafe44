#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/machine_file.h"

namespace spillway {

// --machine and --set, which several commands share.
struct MachineOption {
  std::string name;
  std::vector<std::string> overrides;

  void add_to(CLI::App& command) {
    command.add_option("--machine", name, "a preset (see `spillway machines`) or a FILE.toml")->required();
    command.add_option("--set", overrides, "change one value of the machine: device.memory=20GiB")
        ->allow_extra_args(false);
  }

  Result<MachineModel> load() const {
    TRY(MachineModel machine, load_machine(name));
    for (const std::string& change : overrides) TRY_VOID(apply_override(machine, change));
    return machine;
  }
};

}  // namespace spillway
