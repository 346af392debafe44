#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway {

// A sub-command's last argument: somebody else's command line, which must arrive as it was written. CLI11 takes an
// argument such as "[1,2]" of a list apart, so only the program's name is an option, and the rest is what it leaves
// over.
inline void add_script(CLI::App& command, std::string& program) {
  command.add_option("COMMAND", program, "the script and its arguments, after --")->required()->type_name("...");
  command.prefix_command();
}

// The first of a command's own arguments that is no option of it. CLI11 would hand it to the script, and the run would
// go on without the limit that somebody has mistyped.
inline std::optional<std::string> unknown_option(const CLI::App& command, std::span<char* const> arguments) {
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    const std::string_view argument = arguments[at];
    if (argument.size() < 2 || argument.front() != '-' || argument == "--") return std::nullopt;  // the script
    const bool is_long = argument.starts_with("--");
    std::string name(argument.substr(0, is_long ? argument.find('=') : 2));
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option == nullptr) return name;
    const bool has_value = is_long ? name.size() < argument.size() : argument.size() > 2;
    if (!has_value && option->get_items_expected_max() > 0) ++at;
  }
  return std::nullopt;
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
