// Machine files and --set: any bytes are an error or a machine within all limits, which survives being written and
// read.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "plan/machine_fields.h"
#include "plan/machine_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spillway;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  MachineModel changed = *load_machine("a100");
  (void)apply_override(changed, text);
  for (const MachineField& field : machine_fields())
    CHECK(field.of(changed) >= field.least && field.of(changed) <= field.most);
  if (const auto machines = parse_machine_by_ssd(text, "input"); machines && !machines->empty())
    for (const auto& [id, entry] : *machines)
      for (const MachineField& field : machine_fields()) {
        MachineModel copy = entry.machine;
        CHECK(field.of(copy) <= field.most && (!field.required || field.of(copy) >= field.least));
      }
  auto machine = parse_machine(text, "input");
  if (!machine) {
    CHECK(!machine.error().message.empty());
    return 0;
  }
  for (const MachineField& field : machine_fields()) {
    MachineModel copy = *machine;  // It would get flash.
    CHECK(field.of(copy) <= field.most && (!field.required || field.of(copy) >= field.least));
  }
  const auto again = parse_machine(to_toml(*machine), "output");
  CHECK(again.has_value() && again->hash == machine->hash);
  return 0;
}
