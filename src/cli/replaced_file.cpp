#include "cli/replaced_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "cli/shown_file.h"
#include "timeline/timeline_file.h"
#include "trace/format.h"

namespace spillway {
namespace {

bool begins_with(const std::string& path, std::string_view beginning) {
  std::string bytes(beginning.size(), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes == beginning;
}

bool is_timeline(const std::string& path) {
  const auto file = open_shown(path);
  return file && file->kind == ShownFile::Kind::timeline && parse_timeline(file->content, path);
}

bool is_of_kind(const std::string& path, OutputKind kind) {
  switch (kind) {
    case OutputKind::page:
      return begins_with(path, "<!doctype html>");
    case OutputKind::trace_events:
      return begins_with(path, R"({"displayTimeUnit")");
    case OutputKind::timeline:
      return is_timeline(path);
    case OutputKind::trace:
      return load_trace(path).has_value();
  }
  return false;
}

std::string_view name_of(OutputKind kind) {
  switch (kind) {
    case OutputKind::page:
      return "page";
    case OutputKind::trace_events:
      return "file of trace events";
    case OutputKind::timeline:
      return "timeline";
    case OutputKind::trace:
      return "trace";
  }
  return "";
}

}  // namespace

Result<> check_replaced(const std::string& output, OutputKind kind, std::string_view option) {
  if (output.empty()) return fail(Errc::usage, fmt::format("{}: it names no file; give it one to write", option));
  std::error_code error;
  if (!std::filesystem::is_regular_file(output, error) || std::filesystem::file_size(output, error) == 0) return {};
  if (is_of_kind(output, kind)) return {};
  return fail(Errc::usage, fmt::format("{} {}: that file is no {}, and it would be lost; name another, or remove it",
                                       option, output, name_of(kind)));
}

}  // namespace spillway
