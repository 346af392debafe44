#include "hook/torch/hook.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "hook/torch/command_name.h"
#include "roofline/roofline.h"
#include "session/hook_side.h"
#include "trace/format.h"

namespace spillway {

bool Hook::trace_is_wanted() const { return session_.config.record_path[0] != '\0'; }

// One that is only there for predictions is written once, and once more at the end.
bool Hook::trace_is_wanted_now() const {
  return trace_is_wanted() && (!session_.config.records_for_itself || session_.state.recorded == 0 || taken_back_);
}

// What seemed to be an iteration turned out to be a part of one.
void Hook::take_trace_back() {
  disk_work_.leave([this] {
    if (session_.state.recorded == 0) return;
    const DiskWait wait = record_wait();
    std::error_code ignored;
    const std::filesystem::path path = session_.config.record_path.data();
    if (std::filesystem::is_regular_file(path, ignored))  // What a link points to was written, not the link.
      std::filesystem::remove(std::filesystem::canonical(path, ignored), ignored);
    session_.state.recorded = 0;
    taken_back_ = true;
  });
}

// An iteration asked for is one step.
Result<Hook::TraceSoFar> Hook::trace_so_far() {
  TRY(Trace trace, recorder_->finish());
  return TraceSoFar{.trace = std::move(trace), .steps = std::max<std::uint64_t>(recorder_->progress().steps_each, 1)};
}

Result<> Hook::write(TraceSoFar made) {
  const DiskWait wait = record_wait();
  made.trace.source = kTraceSource;
  made.trace.name = name_of_command();
  const SessionConfig& config = session_.config;
  if (config.mode == SessionMode::dry_run) {
    const Nanos ideal{config.dry_ideal_ns};
    made.trace = with_estimated_times(std::move(made.trace), config.dry_rates, config.dry_machine.data(),
                                      ideal.value == 0 ? std::nullopt : std::optional(ideal));
  }
  TRY_VOID(save_trace(session_.config.record_path.data(), made.trace));
  session_.state.recorded = static_cast<std::uint32_t>(made.steps);
  return {};
}

void Hook::save_trace_so_far() {
  taken_back_ = false;
  if (auto made = trace_so_far())
    disk_work_.leave([this, made = *std::move(made)]() mutable {
      static_cast<void>(write(std::move(made)));  // finish() tells what is wrong.
    });
}

void Hook::save_last_trace() {
  if (!recorder_->has_iteration()) {
    if (keeps_trace_) return;
    take_trace_back();
  }
  disk_work_.leave([this, made = trace_so_far(), others = phases_.not_recorded()]() mutable {
    say_what_was_recorded(made ? write(*std::move(made)) : std::unexpected(made.error()), others);
  });
}

void Hook::say_what_was_recorded(const Result<>& saved, std::uint64_t not_recorded) {
  const bool told = !session_.config.records_for_itself;
  if (!saved && session_.state.recorded == 0)
    session_.state.not_recorded.set(saved.error().message);
  else if (!saved && told)
    add_notice(session_,
               "the trace is that of an earlier moment, since saving it at the end failed: " + saved.error().message);
  else if (saved && told && not_recorded > 0)
    add_notice(session_, std::to_string(not_recorded) +
                             " operators of this run were on threads that do not train (they compute no gradients and "
                             "change no parameters): a trace has none of those");
}

// The script waits meanwhile, but for other threads' kernels.
void Hook::go_on_with_disk_work() {
  if (disk_work_.is_done()) return;
  const Nanos before = now();
  disk_work_.go_on();
  const MutexLock lock(mutex_);
  if (recorder_) recorder_->leave_out(excess(now(), std::max(before, last_end_)));
}

// A trace that nobody asked for is in memory.
DiskWait Hook::record_wait() {
  return {session_.config.records_for_itself ? nullptr : &session_.state.disk_waits, WaitsFor::record};
}

}  // namespace spillway
