#include "journal/played_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/version.h"
#include "journal/iteration_ends.h"
#include "journal/journal_reader.h"
#include "journal/replay.h"
#include "journal/run_names.h"
#include "journal/run_recorder.h"

namespace spillway {
namespace {

// What is found without making the decisions again.
struct Survey {
  IterationEnds ends{};
  std::optional<Nanos> left_out{};  // when the last kernel was ready that is one too many
  PerTier<Bytes> capacity{};
};

// Up to the journal's end, or as far as it can be read.
Result<Survey> survey(const std::string& journal, std::uint64_t most_kernels, RunNames& names) {
  TRY(JournalReader reader, JournalReader::open_file(journal));
  Survey found;
  std::deque<Nanos> kernels;  // the last ones
  Nanos at;
  for (;;) {
    const Result<std::optional<Record>> record = reader.next();
    if (!record || !*record) return found;
    if (const auto* beginning = std::get_if<Beginning>(&**record)) found.capacity = beginning->capacity;
    names.take(**record);
    if (const auto* ended = std::get_if<IterationEnded>(&**record); ended && !found.ends.take(*ended)) return found;
    const auto* told = std::get_if<Told>(&**record);
    if (told == nullptr) continue;
    at += told->since_last;
    if (!std::holds_alternative<KernelReady>(told->event)) continue;
    kernels.push_back(excess(at, told->ago));
    if (kernels.size() <= most_kernels) continue;
    found.left_out = kernels.front();
    kernels.pop_front();
  }
}

// All of them, or the last ones: one at least, or what is after them.
IterationRange range_of(const Survey& survey) {
  if (!survey.left_out || survey.ends.count() == 0) return {};
  const std::uint64_t before = survey.ends.before(*survey.left_out);
  return {.first = std::min(before + 2, std::max(before + 1, survey.ends.count()))};
}

std::string heading_of(const IterationRange& range, std::uint64_t ended, std::uint64_t shown) {
  if (ended == 0) return "a run";
  const std::uint64_t last = std::min(range.first + shown - 1, ended);
  if (range.first > last) return "the rest of a run, after its last iteration";
  if (range.first == 1 && last == ended) return fmt::format("a run of {} iteration{}", ended, ended == 1 ? "" : "s");
  if (range.first == last) return fmt::format("iteration {} of {} of a run", last, ended);
  return fmt::format("iterations {} to {} of {} of a run", range.first, last, ended);
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
  TRY(const Survey found, survey(journal, options.most_kernels, names));
  const std::uint64_t ended = found.ends.count();
  const IterationRange range = options.iterations.value_or(range_of(found));
  if (range.first > ended + 1 || range.last < range.first)
    return fail(Errc::usage, fmt::format("{} has {} iterations, and none of {} to {}; name some of those", journal,
                                         ended, range.first, range.last));
  TRY(JournalReader reader, JournalReader::open_file(journal));
  RunRecorder recorder(range, found.ends, names);
  const auto replayed = replay(reader, {.observer = &recorder});
  if (!replayed) return fail(replayed.error().code, journal + ": " + replayed.error().message);
  std::optional<RunTimeline> timeline = recorder.finish();
  if (!timeline) {
    const std::string note = note_of(*replayed);
    return fail(Errc::bad_input, fmt::format("{}: it ends before its iteration {}{}{}", journal, range.first,
                                             note.empty() ? "" : ": ", note));
  }
  timeline->trace_name =
      options.names != nullptr ? options.names->name : std::filesystem::path(journal).filename().string();
  for (const Tier tier : kTiers) timeline->capacity[tier] = found.capacity[tier];
  timeline->heading = heading_of(range, ended, timeline->iterations);
  // What comes after the last one is no iteration.
  if (range.first + timeline->iterations > ended + 1) {
    timeline->iterations = ended + 1 - range.first;
    for (PlayedMark& mark : timeline->marks)
      if (mark.text == fmt::format("iteration {}", ended + 1)) mark.text = "the rest";
  }
  if (std::string note = note_of(*replayed); !note.empty()) timeline->notes.push_back(std::move(note));
  if (options.names == nullptr)
    timeline->notes.emplace_back("Tensors have no names: no trace of the iteration lies beside the journal.");
  else if (!names.knows_tensors())
    timeline->notes.emplace_back(
        "Tensors have no names: no plan was followed for the iteration that the trace beside the journal has.");
  if (range.first > 1 && !options.iterations)
    timeline->notes.push_back(fmt::format("Only {} shown; `spillway show --iterations FROM-TO` shows others.",
                                          range.first > ended
                                              ? "what is after the last iteration is"
                                              : fmt::format("the iterations from {} on are", range.first)));
  return *std::move(timeline);
}

}  // namespace spillway
