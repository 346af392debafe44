#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/command.h"
#include "cli/machine_option.h"
#include "plan/machine_file.h"
#include "report/json.h"
#include "report/table.h"

namespace spillway {
namespace {

struct MachinesOptions {
  std::string name, ssd_folder = "/var/tmp";
  bool json = false, toml = false;
};

nlohmann::ordered_json json_of(const MachineModel& machine) {
  nlohmann::ordered_json values;
  values["name"] = machine.name;
  values["hash"] = machine.hash;
  values["description"] = machine.description;
  add_values(values, machine);
  return values;
}

// One machine, with every key that --set takes.
Result<int> show_one(const MachinesOptions& options) {
  TRY(const MachineModel machine, machine_by_name(options.name, options.ssd_folder));
  if (options.toml) return print(to_toml(machine));
  if (options.json) {
    nlohmann::ordered_json report = new_report();
    report["machine"] = json_of(machine);
    return print(to_text(report));
  }
  Table table({{"key", Align::left}, {"value", Align::right}, {"meaning", Align::left}});
  for (const MachineValue& value : values_of(machine))
    table.add_row({std::string(value.key), value.text, std::string(value.meaning)});
  return print(fmt::format("{}: {}\n\n{}", printable(machine.name), printable(machine.description), table.text()));
}

Result<int> show_all(const MachinesOptions& options) {
  Table table({{"name", Align::left},
               {"device"},
               {"link in"},
               {"host"},
               {"SSD read"},
               {"write"},
               {"capacity"},
               {"description", Align::left}});
  nlohmann::ordered_json report = new_report();
  for (const std::string_view name : machine_presets()) {
    TRY(const MachineModel machine, load_machine(std::string(name)));
    table.add_row({machine.name, to_text(machine.device.memory), to_text(machine.link.to_device),
                   to_text(machine.host.memory), to_text(machine.ssd_read()), to_text(machine.ssd_write()),
                   to_text(machine.ssd_capacity()), machine.description});
    report["machines"].push_back(json_of(machine));
  }
  return print(options.json ? to_text(report) : table.text());
}

}  // namespace

void add_machines_command(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("machines", "The machines that plans and simulations know");
  command->footer(
      "Examples:\n  spillway machines\n  spillway machines a100          every key and value, as --set takes them\n"
      "  spillway machines mine.toml     checks a file of yours\n"
      "  spillway machines this          what a probe of a few seconds measures here\n"
      "  spillway machines this-gpu      the same with the first GPU of this machine\n"
      "  spillway machines a100 --toml   a file to begin with: > mine.toml\n");
  auto options = std::make_shared<MachinesOptions>();
  command->add_option("NAME", options->name,
                      "a preset, a FILE.toml, or `this`: measured once, kept in your cache folder; `this-gpu`: with "
                      "its GPU");
  command->add_option("--ssd", options->ssd_folder, "where `this` measures its SSD")->capture_default_str();
  CLI::Option* json =
      command->add_flag("--json", options->json, "one JSON object, for programs: bytes, bytes per second, seconds");
  command->add_flag("--toml", options->toml, "the machine NAME as a machine file")->needs("NAME")->excludes(json);
  command->callback(
      [options, &status] { status = finish(options->name.empty() ? show_all(*options) : show_one(*options)); });
}

}  // namespace spillway
