#include "hook/session/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/files.h"
#include "base/unique_fd.h"

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
  const auto refuse = [&](std::string_view reason) {
    return fail(Errc::bad_input, fmt::format("{} {}: {}", option, file, reason));
  };
  std::error_code error;
  const fs::path path = fs::absolute(file, error);
  if (file.empty() || error) return refuse("it names no file");
  if (!path.has_filename() || fs::is_directory(path, error)) return refuse("it is a folder; name a file in it");
  if (is_device(path)) return path.string();
  const fs::path folder = path.parent_path();
  if (!fs::is_directory(folder, error))
    return refuse(fmt::format("there is no folder {}; make it first (mkdir -p)", folder.string()));
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return refuse(
        fmt::format("no file can be made in {}: {}; name another folder", folder.string(), errno_text(errno)));
  return path.string();
}

Result<> write_output(const std::string& file, std::string_view content) {
  if (!is_device(file)) return write_file(file, content);
  // A pipe that nobody reads must not keep us waiting: then opening it fails (ENXIO).
  const int raw = ::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (raw >= 0) ::fcntl(raw, F_SETFL, 0);
  if (raw < 0 && errno == ENXIO)
    return fail(Errc::io, fmt::format("cannot write to {}: nobody reads from it; start the pipe's reader first", file));
  if (raw < 0) return fail(Errc::io, fmt::format("cannot open {}: {}", file, errno_text(errno)));
  const UniqueFd fd(raw);
  while (!content.empty()) {
    const ssize_t put = ::write(fd.get(), content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail(Errc::io, fmt::format("cannot write {}: {}", file, errno_text(errno)));
    content.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

}  // namespace spillway
