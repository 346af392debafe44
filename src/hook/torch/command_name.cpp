#include "hook/torch/command_name.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace spillway {

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
      program = fs::path(argument).stem().string();
    else if (!argument.empty() && argument.front() != '-' && fs::is_regular_file(argument, ignored))
      return fs::path(argument).stem().string();
    begin = end + 1;
  }
  return program;
}

}  // namespace spillway
