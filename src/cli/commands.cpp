#include "cli/command.h"

namespace spillway {

// SPILLWAY_COMMANDS is X(import) X(show) ... out of CMakeLists.txt.
#define X(name) void add_##name##_command(CLI::App& app, int& status);
SPILLWAY_COMMANDS
#undef X

void add_commands(CLI::App& app, int& status) {
#define X(name) add_##name##_command(app, status);
  SPILLWAY_COMMANDS
#undef X
}

}  // namespace spillway
