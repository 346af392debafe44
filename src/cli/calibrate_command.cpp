#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "cli/gpu_option.h"
#include "cli/machine_option.h"
#include "plan/machine_file.h"
#include "report/json.h"
#include "report/table.h"

namespace spillway {
namespace {

struct CalibrateOptions {
  std::string device;
  std::vector<std::string> ssd_folders{"/var/tmp"};
  bool json = false;
};

// Nothing of it is kept: each run measures it in part of a second.
Result<int> run_for_gpu(const CalibrateOptions& options) {
  TRY(const auto gpu, gpu_of(options.device));
  if (!gpu) return fail(Errc::usage, fmt::format("--device {}: there is no GPU to measure", options.device));
  if (options.json) {
    nlohmann::ordered_json report = new_report();
    report["gpu"] = {{"device", fmt::format("cuda:{}", gpu->ordinal)},
                     {"name", gpu->name.data()},
                     {"memory_bytes", gpu->memory.value},
                     {"free_bytes", gpu->free.value},
                     {"to_device_bytes_per_second", gpu->to_device.value},
                     {"from_device_bytes_per_second", gpu->from_device.value},
                     {"fault_seconds", seconds(gpu->blocks.front().fault)}};
    for (const BlockCost& block : gpu->blocks)
      report["gpu"]["blocks"].push_back({{"bytes", block.bytes.value},
                                         {"mapping_seconds", seconds(block.mapping)},
                                         {"fault_seconds", seconds(block.fault)}});
    return print(to_text(report));
  }
  Table table({{"device", Align::left}, {"name", Align::left}, {"memory"}, {"free"}, {"link in"}, {"out"}});
  table.add_row({fmt::format("cuda:{}", gpu->ordinal), printable(gpu->name.data()), to_text(gpu->memory),
                 to_text(gpu->free), to_text(gpu->to_device), to_text(gpu->from_device)});
  Table blocks({{"block"}, {"mapping"}, {"fault"}});
  for (const BlockCost& block : gpu->blocks)
    blocks.add_row({to_text(block.bytes), to_text(block.mapping), to_text(block.fault)});
  return print(table.text() + '\n' + blocks.text());
}

Result<int> run(const CalibrateOptions& options) {
  if (!options.device.empty()) return run_for_gpu(options);
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
      "Examples:\n  spillway calibrate\n  spillway calibrate --device cuda:0\n  spillway calibrate --ssd /mnt/nvme "
      "--ssd /var/tmp\n"
      "Takes up to 10 seconds for each SSD, while the machine should be idle. `spillway run` plans with what is kept "
      "(this.toml, a section\nfor each SSD), and measures by itself where nothing is; `--machine this` simulates with "
      "it.");
  auto options = std::make_shared<CalibrateOptions>();
  command
      ->add_option("--device", options->device,
                   "measure that GPU instead: cuda, cuda:1; the links both ways at once, and a block that is missed")
      ->type_name("NAME");
  command->add_option("--ssd", options->ssd_folders, "a folder on each SSD")
      ->capture_default_str()
      ->excludes("--device")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "one JSON object, for programs: bytes, bytes per second, seconds");
  command->callback([options, &status] { status = finish(run(*options)); });
}

}  // namespace spillway
