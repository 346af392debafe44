#include "hook/torch/hook.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "hook/torch/command_name.h"
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
  const DiskWait wait = record_wait();
  std::error_code ignored;
  const std::filesystem::path path = session_.config.record_path.data();
  if (std::filesystem::is_regular_file(path, ignored))  // What a link points to was written, not the link.
    std::filesystem::remove(std::filesystem::canonical(path, ignored), ignored);
  session_.state.recorded = 0;
  taken_back_ = true;
}

Result<> Hook::save_trace_so_far() {
  TRY(Trace trace, recorder_->finish());
  trace.source = "pytorch " SPILLWAY_TORCH_RELEASE;
  trace.name = name_of_command();
  const std::string path = session_.config.record_path.data();
  const DiskWait wait = record_wait();
  TRY_VOID(save_trace(path, trace));
  // An iteration asked for is one step.
  const Recorder::Progress progress = recorder_->progress();
  session_.state.recorded = static_cast<std::uint32_t>(std::max<std::uint64_t>(progress.steps_each, 1));
  taken_back_ = false;
  return {};
}

void Hook::save_last_trace() {
  if (session_.state.recorded != 0 && !recorder_->has_iteration()) take_trace_back();
  const bool told = !session_.config.records_for_itself;
  if (const auto saved = save_trace_so_far(); !saved && session_.state.recorded == 0)
    session_.state.not_recorded.set(saved.error().message);
  else if (!saved && told)
    add_notice(session_,
               "the trace is that of an earlier moment, since saving it at the end failed: " + saved.error().message);
  else if (saved && told && phases_.not_recorded() > 0)
    add_notice(session_, std::to_string(phases_.not_recorded()) +
                             " operators of this run were on threads that do not train (they compute no gradients and "
                             "change no parameters): a trace has none of those");
}

// A trace that nobody asked for is in memory.
DiskWait Hook::record_wait() {
  return DiskWait(session_.config.records_for_itself ? nullptr : &session_.state.writes_record_since);
}

}  // namespace spillway
