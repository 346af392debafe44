#include "plan/this_machine.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <xxhash.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "plan/machine_file.h"

namespace spillway {
namespace {

void keep(const ThisMachine& options, const MachineModel& machine) {
  std::error_code error;
  std::filesystem::create_directories(options.cache_folder, error);
  if (!error) (void)write_file(kept_in(options), to_toml(machine));  // The measurement is good without its copy.
}

}  // namespace

std::string kept_in(const ThisMachine& options) {
  struct stat status{};
  struct statfs system{};
  if (::stat(options.ssd_folder.c_str(), &status) == 0 && ::statfs(options.ssd_folder.c_str(), &system) == 0) {
    const auto& id = system.f_fsid.__val;  // Device numbers may be another drive's after a restart.
    return fmt::format("{}/this-{}-{}-{:08x}{:08x}.toml", options.cache_folder, major(status.st_dev),
                       minor(status.st_dev), static_cast<unsigned>(id[0]), static_cast<unsigned>(id[1]));
  }
  const std::string& folder = options.ssd_folder;
  return fmt::format("{}/this-{:016x}.toml", options.cache_folder, XXH3_64bits(folder.data(), folder.size()));
}

std::string user_cache_folder() {
  const auto from = [](const char* variable, const char* below) {
    const char* folder = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nobody changes the environment
    return folder && folder[0] == '/' ? std::string(folder) + below : std::string();
  };
  const std::string folder = from("XDG_CACHE_HOME", "/spillway");
  return folder.empty() ? from("HOME", "/.cache/spillway") : folder;
}

Result<MachineModel> this_machine(const ThisMachine& options, const Probe& probe) {
  if (!options.cache_folder.empty() && !options.again)
    if (auto kept = load_machine(kept_in(options))) return *std::move(kept);
  TRY(MachineModel measured, probe(options.ssd_folder));
  measured.name = "this";
  // The same check, limits and hash as for any other file.
  TRY(MachineModel machine, parse_machine(to_toml(measured), "this machine, as measured"));
  if (!options.cache_folder.empty()) keep(options, machine);
  return machine;
}

}  // namespace spillway
