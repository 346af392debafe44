#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/machine_model.h"

namespace spillway {

// Machine files, as docs/formats/machine.md defines them. What comes out of here is complete and within the limits of
// every key: rates are never zero. `where` names the text in errors.
Result<MachineModel> parse_machine(std::string_view toml, const std::string& where);

// The machines that the program carries, by name.
std::span<const std::string_view> machine_presets();

// Whether the name is that of a file, not of a preset.
bool names_machine_file(std::string_view name);

// A preset's name, or the path of a file (it contains a '/' or ends in ".toml").
Result<MachineModel> load_machine(const std::string& name_or_path);

// What the limits of single keys cannot say: whether its flash can hold the SSD's capacity.
Result<> check_machine(const MachineModel& machine);

// Changes one value: "device.memory=20GiB". Remembered in MachineModel::overrides. After the last one follows
// check_machine().
Result<> apply_override(MachineModel& machine, std::string_view key_and_value);

// What parse_machine reads again as the same machine.
std::string to_toml(const MachineModel& machine);

// One machine with each of its SSDs, by an id of letters, digits, '-' and '_'. In the file each has a section [ssd.ID]
// in place of [ssd], and all else is there once.
struct MachineWithSsd {
  std::string folder;  // that the SSD was measured in, for people
  MachineModel machine;
};
using MachineBySsd = std::map<std::string, MachineWithSsd>;
Result<MachineBySsd> parse_machine_by_ssd(std::string_view toml, const std::string& where);
// At least one; what is not about SSDs is that of the first.
std::string to_toml(const MachineBySsd& machines);

// Each value as key and text for people, in the order of the documentation.
struct MachineValue {
  std::string_view key, meaning;
  std::uint64_t number;  // in bytes, bytes per second or, if it is a time, nanoseconds
  bool is_time;
  std::string text;
};
std::vector<MachineValue> values_of(const MachineModel& machine);

}  // namespace spillway
