#include "session/output_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/files.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

bool is_device(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

}  // namespace

Result<std::string> check_output(std::string_view option, const std::string& file) {
  const auto refuse = [&](std::string_view reason, Errc code = Errc::bad_input) {
    return fail(code, fmt::format("{} {}: {}", option, file, reason));
  };
  std::error_code error;
  const fs::path path = fs::absolute(file, error);
  if (file.empty() || file == "--")  // The latter of `--json= -- COMMAND`.
    return fail(Errc::usage, fmt::format("{}: it names no file; give it one to write", option));
  if (file.starts_with("--"))
    return refuse(fmt::format("that is an option; write ./{} if it is the name of a file", file), Errc::usage);
  if (file == "-")
    return refuse("name a file: standard output is the script's (/dev/stdout, if that is no matter)", Errc::usage);
  if (error) return refuse(error.message());
  if (!path.has_filename() || fs::is_directory(path, error)) return refuse("it is a folder; name a file in it");
  if (is_device(path)) return path.string();
  const fs::path folder = path.parent_path();
  if (!fs::is_directory(folder, error))
    return refuse(fmt::format("there is no folder {}; make it first (mkdir -p)", folder.string()));
  if (const auto writable = try_to_write(path.string()); !writable)
    return fail(Errc::bad_input, fmt::format("{}: {}", option, writable.error().message));
  return path.string();
}

}  // namespace spillway
