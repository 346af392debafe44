#include "cli/replaced_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/shown_file.h"
#include "import/chakra_writer.h"
#include "journal/journal_file.h"
#include "latency/model_file.h"
#include "pages/page.h"
#include "plan/plan_file.h"
#include "timeline/timeline_file.h"
#include "trace/compressed.h"
#include "trace/format.h"

namespace spillway {
namespace {

std::string beginning_of(const std::string& path, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(bytes));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

bool is_page(const std::string& path) {
  constexpr std::size_t kHead = 512;
  return beginning_of(path, kHead).contains(kPageMark);
}

bool begins_with(const std::string& path, std::string_view beginning) {
  return beginning_of(path, beginning.size()) == beginning;
}

bool begins_compressed_with(const std::string& path, std::string_view beginning) {
  if (begins_with(path, beginning)) return true;
  const auto content = read_maybe_compressed(path, kMostTraceBytes);
  return content && content->starts_with(beginning);
}

bool is_timeline(const std::string& path) {
  const auto file = open_shown(path);
  return file && file->kind == ShownFile::Kind::timeline && parse_timeline(file->content, path);
}

bool is_run_report(const std::string& path) {
  const auto content = read_file(path, kMostTraceBytes);
  if (!content) return false;
  const auto report = nlohmann::json::parse(*content, nullptr, false);
  return report.is_object() && report.contains("spillway") && report.contains("made_tensors");
}

bool is_of_kind(const std::string& path, OutputKind kind) {
  switch (kind) {
    case OutputKind::page:
      return is_page(path);
    case OutputKind::trace_events:
      return begins_with(path, kTraceEventsBegin);
    case OutputKind::timeline:
      return is_timeline(path);
    case OutputKind::trace:
      return load_trace(path).has_value();
    case OutputKind::plan:
      return load_plan(path).has_value();
    case OutputKind::latencies:
      return load_latencies(path).has_value();
    case OutputKind::execution_trace:
      return begins_compressed_with(path, kExecutionTraceBegin);
    case OutputKind::profile:
      return begins_compressed_with(path, kProfileBegin);
    case OutputKind::run_report:
      return is_run_report(path);
    case OutputKind::journal:
      return begins_with(path, kJournalMagic);
  }
  return false;
}

std::string_view name_of(OutputKind kind) {
  switch (kind) {
    case OutputKind::page:
      return "page of ours";
    case OutputKind::trace_events:
      return "file of trace events of ours";
    case OutputKind::timeline:
      return "timeline";
    case OutputKind::trace:
      return "trace";
    case OutputKind::plan:
      return "plan";
    case OutputKind::latencies:
      return "file of fitted latencies";
    case OutputKind::execution_trace:
      return "execution trace of ours";
    case OutputKind::profile:
      return "profile of ours";
    case OutputKind::run_report:
      return "report of a run";
    case OutputKind::journal:
      return "journal of a run";
  }
  return "";
}

}  // namespace

Result<> check_replaced(const std::string& output, OutputKind kind, std::string_view option) {
  if (output.empty()) return fail(Errc::usage, fmt::format("{}: it names no file; give it one to write", option));
  if (leads_to_descriptor(output)) return {};  // That is written on.
  std::error_code error;
  if (!std::filesystem::is_regular_file(output, error) || std::filesystem::file_size(output, error) == 0) return {};
  if (is_of_kind(output, kind)) return {};
  return fail(Errc::usage, fmt::format("{} {}: that file is no {}, and it would be lost; name another, or remove it",
                                       option, output, name_of(kind)));
}

}  // namespace spillway
