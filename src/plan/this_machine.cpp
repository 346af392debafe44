#include "plan/this_machine.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <xxhash.h>

#include <cstdlib>
#include <filesystem>

#include "base/check.h"
#include "base/files.h"
#include "plan/machine_file.h"

namespace spillway {
namespace {

// More SSDs than this are measured anew as they come.
constexpr std::size_t kMostKept = 32;

// As far as it can be read.
MachineBySsd load_kept(const ThisMachine& options) {
  if (const auto text = read_file(kept_in(options), 1_MiB))
    if (auto kept = parse_machine_by_ssd(*text, kept_in(options))) return *std::move(kept);
  return {};
}

// One for each file system, as far as folders tell: device numbers alone may be another drive's after a restart.
std::string id_of_ssd(const std::string& folder) {
  struct stat status{};
  struct statfs system{};
  if (::stat(folder.c_str(), &status) == 0 && ::statfs(folder.c_str(), &system) == 0) {
    const auto& id = system.f_fsid.__val;
    return fmt::format("fs-{}-{}-{:08x}{:08x}", major(status.st_dev), minor(status.st_dev),
                       static_cast<unsigned>(id[0]), static_cast<unsigned>(id[1]));
  }
  return fmt::format("folder-{:016x}", XXH3_64bits(folder.data(), folder.size()));
}

// Memory and page faults are those measured last, whichever SSD that was for. Of two programs that keep something at
// once one may be forgotten: it is measured again.
Result<> keep(const ThisMachine& options, const std::string& id, const MachineModel& machine) {
  if (options.cache_folder.empty()) return fail(Errc::unavailable, "neither XDG_CACHE_HOME nor HOME names a folder");
  std::error_code error;
  std::filesystem::create_directories(options.cache_folder, error);
  if (error) return fail(Errc::io, fmt::format("cannot make {}: {}", options.cache_folder, error.message()));
  MachineBySsd kept = load_kept(options);
  while (!kept.contains(id) && kept.size() >= kMostKept) kept.erase(kept.begin());
  for (auto& [other, entry] : kept) {
    const auto ssd = entry.machine.ssd;
    entry.machine = machine;
    entry.machine.ssd = ssd;
  }
  CHECK(kept.contains(id) || kept.size() < kMostKept);
  kept[id] = {.folder = options.ssd_folder, .machine = machine};
  return write_file(kept_in(options), to_toml(kept));
}

}  // namespace

std::string kept_in(const ThisMachine& options) { return options.cache_folder + "/this.toml"; }

std::string user_cache_folder() {
  const auto from = [](const char* variable, const char* below) {
    const char* folder = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nobody changes the environment
    return folder && folder[0] == '/' ? std::string(folder) + below : std::string();
  };
  const std::string folder = from("XDG_CACHE_HOME", "/spillway");
  return folder.empty() ? from("HOME", "/.cache/spillway") : folder;
}

Result<MachineModel> this_machine(const ThisMachine& options, const Probe& probe) {
  if (!options.cache_folder.empty()) {
    const MachineBySsd kept = load_kept(options);
    if (const auto found = kept.find(id_of_ssd(options.ssd_folder)); found != kept.end()) return found->second.machine;
  }
  TRY(Measured measured, measure_this_machine(options, probe));
  return std::move(measured.machine);
}

Result<Measured> measure_this_machine(const ThisMachine& options, const Probe& probe) {
  TRY(MachineModel probed, probe(options.ssd_folder));
  probed.name = "this";
  // The same check, limits and hash as for any other file.
  TRY(MachineModel machine, parse_machine(to_toml(probed), "this machine, as measured"));
  const auto kept = keep(options, id_of_ssd(options.ssd_folder), machine);
  return Measured{std::move(machine), kept ? "" : kept.error().message};
}

}  // namespace spillway
