#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace CLI {
class App;
}

namespace spillway {

// Note [Sub-commands]
// A sub-command NAME is the file NAME_command.cpp and nothing else. It includes <CLI/CLI.hpp> and defines
//
//   void add_NAME_command(CLI::App& app, int& status) {
//     CLI::App* command = app.add_subcommand("NAME", "One line for the overview");
//     command->footer("Examples:\n  spillway NAME model.trace");
//     auto options = std::make_shared<Options>();              // lives as long as the callback
//     command->add_option("TRACE", options->trace, "a .trace or .trace.zst file")->required();
//     command->callback([options, &status] { status = finish(run(*options)); });
//   }
//
// A dash in a name is an underscore in the file's and the function's.
// CMakeLists.txt lists the names in the order in which --help shows them; commands.cpp calls each one's function. Usage
// that CLI11 refuses, and ours (Errc::usage), ends with status 2. Results go to stdout; errors, hints and progress to
// stderr.

inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;
inline constexpr int kWrongUsage = 2;
inline constexpr int kInfeasible = 3;

// Says "spillway: error: ..." on stderr; the status to end with.
int report_error(const Error& error);

// What a sub-command's callback does with its outcome: an exit status, or an error to report.
int finish(const Result<int>& outcome);

// All of `text` to stdout; the status to end with. Fails when nobody takes it (a full disk, a closed pipe).
Result<int> print(std::string_view text, int status = kSuccess);

// Also where neither is there yet.
bool are_same_file(const std::string& one, const std::string& other);

// Every sub-command into `app`.
void add_commands(CLI::App& app, int& status);

}  // namespace spillway
