#include "report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>

#include "base/files.h"

namespace spillway {
namespace {

constexpr std::chrono::milliseconds kBetweenDraws{100};
constexpr Nanos kTellsLittle{1'000'000'000};

}  // namespace

std::string progress_text(const std::string& what, std::uint64_t done, std::uint64_t total, Nanos elapsed) {
  if (total == 0) return fmt::format("{}  {}", what, done);
  const double part = static_cast<double>(done) / static_cast<double>(total);
  std::string text = fmt::format("{}  {:3.0f} % ({} of {})", what, 100 * part, done, total);
  if (elapsed < kTellsLittle || done == 0 || done >= total) return text;
  return text + fmt::format(", {:.0f} s left", std::ceil(seconds(elapsed) * (1 - part) / part));
}

Progress::Progress(std::string what, std::uint64_t total)
    : what_(std::move(what)),
      total_(total),
      enabled_(::isatty(STDERR_FILENO) == 1),
      begin_(Clock::now()),
      next_(begin_ + 2 * kBetweenDraws) {}

Progress::~Progress() {
  if (drawn_) tell("\r\x1b[K");
}

void Progress::at(std::uint64_t done) {
  if (enabled_ && Clock::now() >= next_) draw(done);
}

void Progress::draw(std::uint64_t done) {
  const Nanos elapsed{static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - begin_).count())};
  tell("\r" + progress_text(what_, done, total_, elapsed) + "\x1b[K");
  drawn_ = true;
  next_ = Clock::now() + kBetweenDraws;
}

}  // namespace spillway
