#include "report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/files.h"

namespace spillway {
namespace {

constexpr std::chrono::milliseconds kBetweenDraws{100};

}  // namespace

std::string progress_text(const std::string& what, std::uint64_t done, std::uint64_t total) {
  if (total == 0) return fmt::format("{}  {}", what, done);
  const double percent = 100.0 * static_cast<double>(done) / static_cast<double>(total);
  return fmt::format("{}  {:3.0f} % ({} of {})", what, percent, done, total);
}

Progress::Progress(std::string what, std::uint64_t total)
    : what_(std::move(what)),
      total_(total),
      enabled_(::isatty(STDERR_FILENO) == 1),
      next_(Clock::now() + 2 * kBetweenDraws) {}

Progress::~Progress() {
  if (drawn_) tell("\r\x1b[K");
}

void Progress::at(std::uint64_t done) {
  if (enabled_ && Clock::now() >= next_) draw(done);
}

void Progress::draw(std::uint64_t done) {
  tell("\r" + progress_text(what_, done, total_) + "\x1b[K");
  drawn_ = true;
  next_ = Clock::now() + kBetweenDraws;
}

}  // namespace spillway
