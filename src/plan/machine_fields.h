#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "plan/machine_model.h"

namespace spillway {

enum class FieldUnit : std::uint8_t { bytes, rate, duration, count, percent };

inline constexpr std::string_view kOptionalTable = "flash";
// Slower than a byte per millisecond is a mistake, and its times overflow.
inline constexpr BytesPerSecond kSlowest{1'000};

// One key of a machine file: the only place that knows its name, unit and limits.
struct MachineField {
  std::string_view key;  // "device.memory"
  std::string_view meaning;
  FieldUnit unit;
  std::uint64_t least, most;
  bool required;
  std::uint64_t& (*of)(MachineModel&);  // Gives the machine flash, if it is of that.
  // With this value, where there is one, it is no part of a machine's hash: so hashes outlive new keys.
  std::optional<std::uint64_t> unhashed = {};
  bool is_of_plans = true;  // false: no plan or simulation looks at it, and it is never a part of the hash

  std::string_view table() const { return key.substr(0, key.find('.')); }
  std::string_view name() const { return key.substr(key.find('.') + 1); }
  // Whether the machine has such a value at all.
  bool is_of(const MachineModel& machine) const { return table() != kOptionalTable || machine.flash.has_value(); }
};

std::span<const MachineField> machine_fields();
std::string known_machine_keys();  // "device.memory, link.to_device, ..."
const MachineField* find_machine_field(std::string_view key);

// Reads "20GiB" and the like in the field's unit and checks its limits. The error begins with the key.
Result<std::uint64_t> parse_field(const MachineField& field, std::string_view text);
std::string field_text(const MachineField& field, std::uint64_t value);

}  // namespace spillway
