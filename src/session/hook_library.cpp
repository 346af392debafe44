#include "session/hook_library.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/files.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

Result<std::string> find(const fs::path& program_folder, const char* name, const char* build_folder) {
  std::vector<std::string> tried;
  for (const fs::path& folder : {fs::path(build_folder), fs::path("../" SPILLWAY_LIBDIR "/spillway"), fs::path(".")}) {
    const fs::path file = (program_folder / folder / name).lexically_normal();
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored)) return file.string();
    tried.push_back(file.string());
  }
  return fail(Errc::unavailable,
              fmt::format("{} is missing: it was looked for as {}; build Spillway with the script's Python "
                          "(cmake -DSPILLWAY_PYTHON=/path/to/python3, one that has PyTorch 2), or install it again",
                          name, fmt::join(tried, " and ")));
}

}  // namespace

Result<HookLibraries> find_hook_libraries(bool for_gpu) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return fail(Errc::io, fmt::format("cannot tell where this program lies: {}", error.message()));
  const fs::path folder = program.parent_path();
  TRY(std::string preload, find(folder, "libspillway_preload.so", "src/hook/preload"));
  TRY(std::string torch, find(folder, "libspillway_torch.so", "src/hook/torch"));
  HookLibraries libraries{std::move(preload), std::move(torch), {}, {}};
  if (!for_gpu) return libraries;
  TRY(libraries.cuda, find(folder, "libspillway_cuda.so", "src/hook/cuda"));
  // Not there where the PyTorch of the build has no CUDA. The script's process says so if it needs it.
  if (auto found = find(folder, "libspillway_torch_cuda.so", "src/hook/torch/cuda")) libraries.torch_cuda = *found;
  return libraries;
}

Result<std::string> preload_name(const std::string& path) {
  if (path.find_first_of(" \t\n:") == std::string::npos) return path;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(Errc::io, fmt::format("cannot open {}: {}", path, errno_text(errno)));
  return fmt::format("/proc/{}/fd/{}", ::getpid(), fd);
}

}  // namespace spillway
