#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "cli/machine_option.h"
#include "plan/machine_file.h"
#include "report/json.h"
#include "report/table.h"

namespace spillway {
namespace {

struct CalibrateOptions {
  std::vector<std::string> ssd_folders{"/var/tmp"};
  bool json = false;
};

Result<int> run(const CalibrateOptions& options) {
  Table table(
      {{"SSD of", Align::left}, {"memory"}, {"fault"}, {"SSD read"}, {"write"}, {"latency"}, {"kept in", Align::left}});
  nlohmann::ordered_json report = new_report();
  nlohmann::ordered_json& list = report["machines"] = nlohmann::ordered_json::array();
  std::string not_kept;
  int status = kSuccess;
  for (const std::string& folder : options.ssd_folders) {
    const Result<Calibration> measured = calibrate(folder);
    if (!measured) {  // What the others gave is shown all the same.
      status = report_error(measured.error());
      continue;
    }
    const Calibration& calibration = *measured;
    const MachineModel& machine = calibration.machine;
    if (!calibration.not_kept.empty()) not_kept = calibration.not_kept;
    table.add_row({printable(folder), to_text(machine.link.to_device), to_text(machine.fault.cost),
                   to_text(machine.ssd_read()), to_text(machine.ssd_write()), to_text(machine.ssd.read_latency),
                   calibration.file.empty() ? "nowhere" : printable(calibration.file)});
    nlohmann::ordered_json& one = list.emplace_back();
    one["ssd"] = folder;
    one["file"] = calibration.file.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(calibration.file);
    add_values(one, machine);
  }
  if (options.json || !list.empty()) TRY_VOID(print(options.json ? to_text(report) : table.text()));
  if (!not_kept.empty())
    return fail(Errc::io, fmt::format("what was measured is not kept, so every run will measure: {}", not_kept));
  return status;
}

}  // namespace

void add_calibrate_command(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("calibrate", "Measure this machine anew: link rates, page faults, SSDs");
  command->footer(
      "Examples:\n  spillway calibrate\n  spillway calibrate --ssd /mnt/nvme --ssd /var/tmp\n"
      "Takes up to 10 seconds for each SSD, while the machine should be idle. `spillway run` plans with what is kept "
      "(this.toml, a section\nfor each SSD), and measures by itself where nothing is; `--machine this` simulates with "
      "it.");
  auto options = std::make_shared<CalibrateOptions>();
  command->add_option("--ssd", options->ssd_folders, "a folder on each SSD")
      ->capture_default_str()
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "one JSON object, for programs: bytes, bytes per second, seconds");
  command->callback([options, &status] { status = finish(run(*options)); });
}

}  // namespace spillway
