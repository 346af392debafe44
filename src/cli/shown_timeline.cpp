#include "cli/shown_timeline.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "cli/machine_option.h"
#include "cli/record_folder.h"
#include "cli/show_plan.h"
#include "journal/played_run.h"
#include "plan/machine_file.h"
#include "timeline/planned_timeline.h"
#include "timeline/timeline_file.h"
#include "trace/format.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value > 0 ? std::optional(value) : std::nullopt;
}

Result<IterationRange> range_in(const std::string& text) {
  const std::size_t dash = text.find('-');
  const auto first = number_in(std::string_view(text).substr(0, dash));
  const auto last = dash == std::string::npos ? first : number_in(std::string_view(text).substr(dash + 1));
  if (!first || !last || *last < *first)
    return fail(Errc::usage, fmt::format("--iterations {}: say N or FROM-TO, counted from 1: 3, or 3-8", text));
  return IterationRange{*first, *last};
}

// The iteration that the run has recorded, if it has.
Result<std::optional<LoadedTrace>> names_of(const std::string& journal, const std::string& trace) {
  const fs::path beside = fs::path(journal).parent_path() / kRecordedTraceName;
  std::error_code error;
  if (trace.empty() && !fs::is_regular_file(beside, error)) return std::nullopt;
  TRY(LoadedTrace loaded, load_trace(trace.empty() ? beside.string() : trace));
  return loaded;
}

Result<RunTimeline> run_of(const std::string& journal, const TimelineChoice& choice) {
  PlayedRunOptions options;
  if (!choice.iterations.empty()) {
    TRY(options.iterations, range_in(choice.iterations));
  }
  TRY(const std::optional<LoadedTrace> names, names_of(journal, choice.trace));
  options.names = names ? &names->trace : nullptr;
  return played_run(journal, options);
}

// A run's own plan was made for the machine that it measured: the rates of its SSD, which are all that limits it.
Result<MachineModel> machine_of(const Plan& plan) {
  MachineModel machine;
  if (plan.machine_name == "this" && plan.machine_hash.empty()) {
    machine.link.to_device = machine.link.from_device = machine.ssd.read = machine.ssd.write = {1'000'000'000'000};
  } else {
    TRY(machine, machine_by_name(plan.machine_name, MachineOption{}.ssd_folder));
  }
  for (const std::string& change : plan.machine_overrides) TRY_VOID(apply_override(machine, change));
  return machine;
}

Result<RunTimeline> plan_of(const std::string& file, const std::string& trace) {
  TRY(const PlanWithTrace shown, load_plan_with_trace(file, trace));
  const auto machine = machine_of(shown.plan);
  TRY(RunTimeline timeline,
      planned_timeline(shown.plan, shown.loaded, machine ? std::optional(*machine) : std::nullopt));
  if (!machine)
    timeline.notes.push_back(
        fmt::format("Moves are drawn as if they took no time: the machine that it was planned for "
                    "is not to be had here ({}).",
                    machine.error().message));
  return timeline;
}

}  // namespace

Result<RunTimeline> timeline_of(const ShownFile& file, const TimelineChoice& choice) {
  switch (file.kind) {
    case ShownFile::Kind::journal:
      return run_of(file.path, choice);
    case ShownFile::Kind::timeline:
      return parse_timeline(file.content, file.path);
    case ShownFile::Kind::trace: {
      TRY(const LoadedTrace loaded, parse_trace(file.content, file.path));
      return unlimited_timeline(loaded.trace, loaded.hash);
    }
    case ShownFile::Kind::plan:
      return plan_of(file.path, choice.trace);
    case ShownFile::Kind::run_report:
      break;
  }
  return fail(Errc::usage, fmt::format("{}: the report of a run has no moments", file.path));
}

}  // namespace spillway
