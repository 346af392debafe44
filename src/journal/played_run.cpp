#include "journal/played_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/version.h"
#include "journal/journal_reader.h"
#include "journal/replay.h"
#include "journal/run_names.h"
#include "journal/run_recorder.h"

namespace spillway {
namespace {

// What is found without making the decisions again.
struct Survey {
  std::map<std::uint64_t, std::uint64_t> kernels{};  // by iterations that had ended
  PerTier<Bytes> capacity{};
  std::uint64_t ended() const { return kernels.empty() ? 0 : kernels.rbegin()->first; }
};

// Up to the journal's end, or as far as it can be read.
Result<Survey> survey(const std::string& journal, RunNames& names) {
  TRY(JournalReader reader, JournalReader::open_file(journal));
  Survey found;
  for (;;) {
    const Result<std::optional<Record>> record = reader.next();
    if (!record || !*record) return found;
    if (const auto* beginning = std::get_if<Beginning>(&**record)) found.capacity = beginning->capacity;
    names.take(**record);
    if (const auto* told = std::get_if<Told>(&**record))
      found.kernels[told->iterations] += std::holds_alternative<KernelReady>(told->event);
  }
}

// All of them, or the last ones.
IterationRange range_of(const Survey& survey, std::uint64_t most_kernels) {
  std::uint64_t kernels = 0;
  std::uint64_t first = survey.ended() + 1;
  for (auto one = survey.kernels.rbegin(); one != survey.kernels.rend(); ++one) {
    kernels += one->second;
    if (kernels > most_kernels && one != survey.kernels.rbegin()) return {.first = first};
    first = one->first + 1;
  }
  return {};
}

std::string heading_of(const IterationRange& range, std::uint64_t ended, std::uint64_t shown) {
  if (ended == 0) return "a run";
  const std::uint64_t last = range.first + shown - 1;
  if (range.first == 1 && last >= ended) return fmt::format("a run of {} iteration{}", ended, ended == 1 ? "" : "s");
  if (shown == 1) return fmt::format("iteration {} of {} of a run", range.first, ended);
  return fmt::format("iterations {} to {} of {} of a run", range.first, std::min(last, ended), ended);
}

std::string note_of(const Replay& replay) {
  switch (replay.end) {
    case Replay::End::difference:
      return fmt::format(
          "Only what was before event {} is shown: from there on this program (version {}) decides otherwise than the "
          "one that ran (version {}).",
          replay.events, kVersion, replay.version);
    case Replay::End::damaged:
      return fmt::format("Only what was before event {} is shown: {}.", replay.events, replay.why);
    case Replay::End::stopped:
      return fmt::format("The journal ends before the run did: {}.", replay.why);
    case Replay::End::failed:
      return fmt::format("The run could not go on: {}.", replay.why);
    case Replay::End::script_ended:
    case Replay::End::open:
      return "";
  }
  return "";
}

}  // namespace

Result<RunTimeline> played_run(const std::string& journal, const PlayedRunOptions& options) {
  RunNames names(options.names);
  TRY(const Survey found, survey(journal, names));
  const IterationRange range = options.iterations.value_or(range_of(found, options.most_kernels));
  if (range.first > found.ended() + 1 || range.last < range.first)
    return fail(Errc::usage, fmt::format("{} has {} iterations, and none of {} to {}; name some of those", journal,
                                         found.ended(), range.first, range.last));
  TRY(JournalReader reader, JournalReader::open_file(journal));
  RunRecorder recorder(range, names);
  const auto replayed = replay(reader, {.observer = &recorder});
  if (!replayed) return fail(replayed.error().code, journal + ": " + replayed.error().message);
  std::optional<RunTimeline> timeline = recorder.finish();
  if (!timeline) {
    const std::string note = note_of(*replayed);
    return fail(Errc::bad_input,
                note.empty()
                    ? fmt::format("{}: iterations {} to {} were told of together with later ones; name more of "
                                  "them after --iterations",
                                  journal, range.first, range.last)
                    : fmt::format("{}: it ends before its iteration {}: {}", journal, range.first, note));
  }
  timeline->trace_name =
      options.names != nullptr ? options.names->name : std::filesystem::path(journal).filename().string();
  for (const Tier tier : kTiers) timeline->capacity[tier] = found.capacity[tier];
  timeline->heading = heading_of(range, found.ended(), timeline->iterations);
  // What comes after the last one is no iteration.
  if (range.first + timeline->iterations > found.ended() + 1) {
    timeline->iterations = found.ended() + 1 - range.first;
    for (PlayedMark& mark : timeline->marks)
      if (mark.text == fmt::format("iteration {}", found.ended() + 1)) mark.text = "the rest";
  }
  if (std::string note = note_of(*replayed); !note.empty()) timeline->notes.push_back(std::move(note));
  if (options.names == nullptr)
    timeline->notes.emplace_back("Tensors have no names: no trace of the iteration lies beside the journal.");
  else if (!names.knows_tensors())
    timeline->notes.emplace_back(
        "Tensors have no names: no plan was followed for the iteration that the trace beside the journal has.");
  if (range.first > 1 && !options.iterations)
    timeline->notes.push_back(fmt::format(
        "Only the last iterations are shown, from {} on; `spillway show --iterations FROM-TO` shows others.",
        range.first));
  return *std::move(timeline);
}

}  // namespace spillway
