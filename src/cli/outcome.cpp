#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/files.h"
#include "cli/command.h"
#include "report/table.h"

namespace spillway {

int report_error(const Error& error) {
  // Messages quote foreign files: what could steer the terminal, or is not UTF-8, must not reach it.
  constexpr std::size_t kMostShown = 2'000;
  tell(fmt::format("spillway: error: {}\n", printable(error.message, kMostShown)));
  return error.code == Errc::usage ? kWrongUsage : kFailure;
}

int finish(const Result<int>& outcome) { return outcome ? *outcome : report_error(outcome.error()); }

Result<int> print(std::string_view text, int status) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return status;
  return fail(Errc::io, "cannot write to standard output: " + errno_text(errno));
}

bool are_same_file(const std::string& one, const std::string& other) {
  std::error_code error;
  const auto resolved = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  };
  return resolved(one) == resolved(other) || std::filesystem::equivalent(one, other, error);
}

}  // namespace spillway
