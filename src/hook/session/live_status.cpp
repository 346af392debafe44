#include "hook/session/live_status.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/files.h"
#include "base/text.h"
#include "hook/session/hook_side.h"

namespace spillway {
namespace {

double per_second(Bytes before, Bytes now, double elapsed) {
  return elapsed > 0 ? static_cast<double>(excess(now, before).value) / elapsed : 0;
}

// "824M", "1.2G"
std::string brief(Bytes size) {
  const double mib = static_cast<double>(size.value) / static_cast<double>((1_MiB).value);
  return mib < 1000 ? fmt::format("{:.0f}M", mib) : fmt::format("{:.1f}G", mib / 1024);
}

std::string line(const Session& session, const LiveStatus::Moment& before, const LiveStatus::Moment& now,
                 bool is_brief) {
  const SessionState& state = session.state;
  const double elapsed = seconds(excess(now.at, before.at));
  const double stalled = seconds(excess(now.stall, before.stall));
  std::string text = "before the first iteration";
  const std::uint64_t count = state.iteration_count.load(std::memory_order_acquire);
  if (count > 0) text = fmt::format("{} {}", is_brief ? "it" : "iteration", count);
  if (count > 0 && count <= kMaxIterations)  // Of those after them nothing is kept.
    text += fmt::format("{} {:.{}f} s", is_brief ? "" : ",",
                        seconds(Nanos{state.iterations[count - 1].duration_ns.load()}), is_brief ? 2 : 3);
  const std::uint64_t plans = std::min<std::uint64_t>(state.plan_count.load(), kMaxPlans);
  if (plans > 0 && state.plans[plans - 1].given_up_at_iteration.load() == 0) text += is_brief ? " plan" : ", planned";
  text += fmt::format("  stall {:.0f} % ", elapsed > 0 ? std::min(100.0, 100 * stalled / elapsed) : 0);
  const auto add = [&](std::string_view name, std::string_view brief_name, const std::atomic<std::uint64_t>& bytes) {
    text += is_brief ? fmt::format(" {} {}", brief_name, brief(Bytes{bytes.load()}))
                     : fmt::format(" {} {} ", name, to_text(Bytes{bytes.load()}));
  };
  add("device", "dev", state.device_bytes);
  if (session.config.host_budget_bytes != 0) add("host", "host", state.host_bytes);
  add("ssd", "ssd", state.ssd_bytes);
  return text + fmt::format("{}in {:.1f}{} out {:.1f} GB/s", is_brief ? "  " : " ",
                            per_second(before.in, now.in, elapsed) / 1e9, is_brief ? "" : ",",
                            per_second(before.out, now.out, elapsed) / 1e9);
}

}  // namespace

LiveStatus::Moment moment_of(const SessionState& state, Nanos at) {
  LiveStatus::Moment moment{.at = at, .stall = Nanos{state.stall_ns.load()}, .in = {}, .out = {}};
  for (const Tier below : {Tier::host, Tier::ssd}) {
    moment.in += Bytes{state.moved(below, Tier::device).load()};
    moment.out += Bytes{state.moved(Tier::device, below).load()};
  }
  return moment;
}

std::string status_text(const Session& session, const LiveStatus::Moment& before, const LiveStatus::Moment& now,
                        std::size_t columns) {
  std::string text = line(session, before, now, false);
  if (text.size() > columns) text = line(session, before, now, true);
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
