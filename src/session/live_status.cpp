#include "session/live_status.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/files.h"
#include "base/text.h"
#include "session/hook_side.h"

namespace spillway {
namespace {

double per_second(Bytes before, Bytes now, double elapsed) {
  return elapsed > 0 ? static_cast<double>(excess(now, before).value) / elapsed : 0;
}

// "824M", "1.2G", "20G"
std::string brief(Bytes size) {
  const double mib = static_cast<double>(size.value) / static_cast<double>((1_MiB).value);
  return mib < 1000 ? fmt::format("{:.0f}M", mib) : fmt::format("{:.{}f}G", mib / 1024, mib < 10'000 ? 1 : 0);
}

struct Words {
  std::string_view iteration, planned, after_place, gap, device;
  int decimals;
  std::string (*bytes)(Bytes);
  std::string_view between_rates;
};
constexpr Words kLong{"iteration", ", planned", ",", "  ", "device", 3, to_text, ", "};
constexpr Words kBrief{"it", " plan", "", " ", "dev", 2, brief, " "};

std::string line(const Session& session, const LiveStatus::Moment& before, const LiveStatus::Moment& now,
                 const Words& words) {
  const SessionState& state = session.state;
  const double elapsed = seconds(excess(now.at, before.at));
  const double stalled = seconds(excess(now.stall, before.stall));
  std::string text = "before the first iteration";
  if (const auto [count, iteration] = state.iterations.last(); count > 0)
    text = fmt::format("{} {}{} {:.{}f} s", words.iteration, count, words.after_place, seconds(iteration.duration),
                       words.decimals);
  if (const auto [count, plan] = state.plans.last(); count > 0 && plan.end == PlanEnd::none) text += words.planned;
  text += fmt::format("{}stall {:.0f} %", words.gap, elapsed > 0 ? std::min(100.0, 100 * stalled / elapsed) : 0);
  const PerTier<Bytes> held = state.memory.load().held;
  const auto add = [&](std::string_view name, Bytes bytes) {
    text += fmt::format("{}{} {}", words.gap, name, words.bytes(bytes));
  };
  add(words.device, held.device);
  if (session.config.host_budget_bytes != 0) add("host", held.host);
  add("ssd", held.ssd);
  return text + fmt::format("{}in {:.1f}{}out {:.1f} GB/s", words.gap, per_second(before.in, now.in, elapsed) / 1e9,
                            words.between_rates, per_second(before.out, now.out, elapsed) / 1e9);
}

}  // namespace

LiveStatus::Moment moment_of(const SessionState& state, Nanos at) {
  const MemoryFigures memory = state.memory.load();
  LiveStatus::Moment moment{.at = at, .stall = memory.stall, .in = {}, .out = {}};
  for (const Tier below : {Tier::host, Tier::ssd}) {
    moment.in += memory.moved(below, Tier::device);
    moment.out += memory.moved(Tier::device, below);
  }
  return moment;
}

std::string status_text(const Session& session, const LiveStatus::Moment& before, const LiveStatus::Moment& now,
                        std::size_t columns) {
  std::string text = line(session, before, now, kLong);
  if (text.size() > columns) text = line(session, before, now, kBrief);
  return text.substr(0, columns);
}

LiveStatus::LiveStatus(const Session& session) : session_(session), enabled_(::isatty(STDERR_FILENO) == 1) {}

LiveStatus::~LiveStatus() {
  if (drawn_ && can_tell()) tell("\r\x1b[K");
}

// The cursor stays at the line's start, so that what the script prints does not begin behind our text.
void LiveStatus::draw() {
  if (!enabled_ || session_.state.owner_pid.load() == 0) return;
  if (::tcgetpgrp(STDERR_FILENO) != ::getpgrp()) return;  // The terminal is somebody else's now.
  if (!can_tell()) return;
  const Moment now = moment_of(session_.state, Nanos{monotonic_ns()});
  winsize size{};
  const std::size_t columns =
      ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
  tell("\r\x1b[K" + status_text(session_, last_, now, columns) + "\r");
  drawn_ = true;
  last_ = now;
}

}  // namespace spillway
