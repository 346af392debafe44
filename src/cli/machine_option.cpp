#include "cli/machine_option.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/gpu_option.h"
#include "machines/cpu/probe.h"
#include "memory/tier.h"
#include "plan/machine_file.h"
#include "plan/this_machine.h"
#include "session/own_process.h"

namespace spillway {
namespace {

constexpr Nanos kMostForProbe{40'000'000'000};  // It takes 10 s where the disk answers.

// Both the device and host memory of `this` are parts of its RAM: how large a part the user says with --set.
Result<MachineModel> measure(const std::string& ssd_folder, bool quiet) {
  if (!quiet && ::isatty(STDERR_FILENO) == 1) tell("spillway: measuring this machine, which takes up to 10 seconds\n");
  TRY(const MachineProbe probe,
      in_own_process<MachineProbe>({.disk = ssd_folder,
                                    .limit = kMostForProbe,
                                    .if_late = "its rates were to be measured; check the disk, or name another "
                                               "directory with --ssd"},
                                   [&] { return probe_machine(ssd_folder); }));
  MachineModel machine;
  machine.description = "this machine as measured";
  machine.device.memory = probe.memory;
  machine.host.memory = probe.memory;
  machine.link.to_device = machine.link.from_device = probe.copy_rate;
  machine.ssd.read = probe.ssd_read;
  machine.ssd.write = probe.ssd_write;
  machine.ssd.read_latency = probe.ssd_read_latency;
  machine.ssd.write_latency = probe.ssd_write_latency;
  machine.ssd.capacity = probe.ssd_free;
  machine.fault.cost = probe.fault;
  machine.fault.bytes = probe.fault_bytes;
  return machine;
}

ThisMachine this_machine_at(const std::string& ssd_folder) {
  std::error_code error;  // What cannot be resolved, the measurement will complain about.
  const std::string folder = std::filesystem::weakly_canonical(ssd_folder, error).string();
  return {.ssd_folder = error ? ssd_folder : folder, .cache_folder = user_cache_folder()};
}

}  // namespace

Result<MachineModel> machine_by_name(const std::string& name, const std::string& ssd_folder, bool quiet) {
  if (name != "this" && name != "this-gpu") return load_machine(name);
  TRY(MachineModel machine,
      this_machine(this_machine_at(ssd_folder), [quiet](const std::string& folder) { return measure(folder, quiet); }));
  if (name == "this") return machine;
  TRY(const auto gpu, gpu_of("cuda"));
  TRY(const Bytes pinned, default_pinned_memory());
  return machine_with(std::move(machine), *gpu, pinned);
}

Result<MachineModel> machine_with(MachineModel machine, const Gpu& gpu, Bytes host) {
  machine.name = "this-gpu";
  machine.description = fmt::format("{} of this machine as measured", gpu.name.data());
  machine.device.memory = gpu.free;
  machine.host.memory = host;
  machine.host.keeps_copies = 1;
  machine.link.to_device = gpu.to_device;
  machine.link.from_device = gpu.from_device;
  machine.fault.cost = gpu.blocks.front().fault;
  machine.fault.bytes = gpu.blocks.front().bytes;
  return parse_machine(to_toml(machine), "this machine with its GPU, as measured");  // with its hash
}

Result<Calibration> calibrate(const std::string& ssd_folder) {
  const ThisMachine options = this_machine_at(ssd_folder);
  TRY(Measured measured,
      measure_this_machine(options, [](const std::string& folder) { return measure(folder, false); }));
  return Calibration{.machine = std::move(measured.machine),
                     .file = measured.not_kept.empty() ? kept_in(options) : "",
                     .not_kept = std::move(measured.not_kept)};
}

void add_values(nlohmann::ordered_json& object, const MachineModel& machine) {
  for (const MachineValue& value : values_of(machine)) {
    auto& number = object[std::string(value.key)];
    number = value.number;
    if (value.is_time) number = seconds(Nanos{value.number});
  }
}

void MachineOption::add_to(CLI::App& command) {
  command.add_option("--machine", name, "a preset (see `spillway machines`), a FILE.toml, `this`, or `this-gpu`")
      ->required();
  command.add_option("--set", overrides, "change one value of the machine: device.memory=20GiB")
      ->allow_extra_args(false);
  command.add_option("--ssd", ssd_folder, "where `this` measures its SSD")->capture_default_str();
}

std::string MachineOption::file() const { return names_machine_file(name) ? name : ""; }

Result<MachineModel> MachineOption::load() const {
  TRY(MachineModel machine, machine_by_name(name, ssd_folder));
  for (const std::string& change : overrides) TRY_VOID(apply_override(machine, change));
  if (const auto fits = check_machine(machine); !fits) return fail(Errc::usage, "cannot set " + fits.error().message);
  return machine;
}

}  // namespace spillway
