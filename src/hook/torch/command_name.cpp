#include "hook/torch/command_name.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "report/table.h"

namespace spillway {

namespace {

// A trace is UTF-8; a file's name may be anything.
std::string in_utf8(const std::filesystem::path& path) { return printable(path.stem().string(), 200); }

}  // namespace

std::string name_of_command() {
  namespace fs = std::filesystem;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string line{std::istreambuf_iterator<char>(file), {}};
  std::string program;
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find('\0', begin), line.size());
    const std::string argument = line.substr(begin, end - begin);
    std::error_code ignored;
    if (begin == 0)
      program = in_utf8(argument);
    else if (!argument.empty() && argument.front() != '-' && fs::is_regular_file(argument, ignored))
      return in_utf8(argument);
    begin = end + 1;
  }
  return program;
}

}  // namespace spillway
