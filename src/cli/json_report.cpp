#include "cli/json_report.h"

#include <filesystem>

#include "base/files.h"
#include "cli/replaced_file.h"
#include "session/output_file.h"
#include "session/own_process.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

bool is_of_the_kernel(const std::string& file) { return file.starts_with("/dev/") || file.starts_with("/proc/"); }

bool is_stream(const std::string& file) {
  std::error_code none;
  return leads_to_descriptor(file) || (fs::exists(file, none) && !fs::is_regular_file(file, none));
}

}  // namespace

Result<JsonReport> JsonReport::open(const std::string& file, Nanos limit) {
  JsonReport report;
  report.is_stream_ = is_of_the_kernel(file) && is_stream(file);
  if (report.is_stream_) {
    TRY(report.path_, check_output("--json", file));
    return report;
  }
  constexpr char kStream = 's', kFile = 'f';
  TRY(const std::string found,
      bytes_from_own_process({.disk = file,
                              .limit = limit,
                              .if_late = "a file was to be made there on trial; check the disk, name another file with "
                                         "--json, or allow more time with --io-timeout"},
                             [&]() -> Result<std::string> {
                               TRY(const std::string path, check_output("--json", file));
                               if (is_stream(file)) return kStream + path;
                               TRY_VOID(check_replaced(path, OutputKind::run_report, "--json"));
                               return kFile + path;
                             }));
  report.is_stream_ = found.starts_with(kStream);
  report.path_ = found.substr(1);
  return report;
}

Result<> JsonReport::write(const std::string& text, Nanos limit) const {
  if (is_stream_) return write_file(path_, text);
  const auto written =
      bytes_from_own_process({.disk = path_,
                              .limit = limit,
                              .if_late = "the report was to be written there; check the disk, or name another file "
                                         "with --json"},
                             [&]() -> Result<std::string> {
                               TRY_VOID(write_file(path_, text));
                               return "";
                             });
  if (!written) return std::unexpected(written.error());
  return {};
}

}  // namespace spillway
