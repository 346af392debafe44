#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace spillway {

// A sub-command's last argument: somebody else's command line, which must arrive as it was written. CLI11 takes an
// argument such as "[1,2]" of a list apart, so only the program's name is an option, and the rest is what it leaves
// over.
inline void add_script(CLI::App& command, std::string& program) {
  command.add_option("COMMAND", program, "the script and its arguments, after --")->required()->type_name("...");
  command.prefix_command();
}

// The program and its arguments, once the command line is parsed.
inline std::vector<std::string> script_of(const CLI::App& command, const std::string& program) {
  std::vector<std::string> script{program};
  const std::vector<std::string> rest = command.remaining();
  // The mark before the program is left over, too.
  script.insert(script.end(), rest.begin() + (!rest.empty() && rest.front() == "--" ? 1 : 0), rest.end());
  return script;
}

}  // namespace spillway
