#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <new>

#include "base/files.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/script.h"

namespace spillway {
namespace {

constexpr const char* kAbout =
    "Spillway trains models that do not fit the memory they are given: it moves tensors among a device's memory, host "
    "memory and SSDs ahead of their use.";
constexpr const char* kExamples =
    "Examples:\n"
    "  spillway run --device-memory 1GiB --record . -- python3 train.py\n"
    "  spillway show model.trace\n"
    "  spillway compare model.trace --machine a100\n"
    "`spillway COMMAND --help` explains each with examples.\n"
    "Exit status: 0 done, 1 error, 2 wrong usage, 3 infeasible (the memory cannot suffice); of `run`, the script's "
    "own.";

// The nearest words to `--help` for somebody who has mistyped one.
int wrong_usage(const CLI::App& app, const std::string& what, std::string command = "spillway") {
  for (const CLI::App* sub : app.get_subcommands()) command += " " + sub->get_name();
  tell(fmt::format("spillway: error: {}; see {} --help\n", what, command));
  return kWrongUsage;
}

std::string command_names(CLI::App& app) {
  std::string names;
  for (const CLI::App* sub : app.get_subcommands({})) names += (names.empty() ? "" : ", ") + sub->get_name();
  return names;
}

bool is_command(CLI::App& app, std::string_view name) {
  return std::ranges::any_of(app.get_subcommands({}), [&](const CLI::App* sub) { return sub->get_name() == name; });
}

// Whoever closed them: a file that we open must not become what others take for the standard streams.
void fill_standard_streams() {
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::open("/dev/null", O_RDWR))
    if (fd > STDERR_FILENO) {
      ::close(fd);
      return;
    }
}

int run(int argc, char** argv) {
  fill_standard_streams();
  CLI::App app(kAbout, "spillway");
  app.footer(kExamples);
  app.set_version_flag("--version", "spillway " + std::string(kVersion));
  app.require_subcommand(1);
  int status = kSuccess;
  add_commands(app, status);
  if (argc > 1 && argv[1][0] != '-' && !is_command(app, argv[1]))
    return wrong_usage(app, fmt::format("'{}' is no command; there are {}", argv[1], command_names(app)));
  if (argc == 1) return wrong_usage(app, "no command; there are " + command_names(app));
  if (argc > 2 && is_command(app, argv[1])) {
    const CLI::App& command = *app.get_subcommand(argv[1]);
    if (static_cast<bool>(command.get_prefix_command()))
      if (const auto unknown = unknown_option(command, {argv + 2, argv + argc}))
        return wrong_usage(app, fmt::format("unknown option {} (what is the script's stands after --)", *unknown),
                           "spillway " + command.get_name());
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return wrong_usage(app, error.what());
  } catch (const std::bad_alloc&) {
    return finish(fail(Errc::unavailable, "there is not enough memory for this (ulimit -v, or a container's limit)"));
  }
  return status;
}

}  // namespace
}  // namespace spillway

int main(int argc, char** argv) { return spillway::run(argc, argv); }
