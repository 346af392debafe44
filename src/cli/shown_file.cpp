#include "cli/shown_file.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "journal/journal_file.h"
#include "timeline/timeline_file.h"
#include "timeline/timeline_format.h"
#include "trace/compressed.h"

namespace spillway {
namespace {

// Reads a JSON object up to its key `format`; without one, all of it.
class Head : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::string format;
  bool is_report = false;  // it has a key that only reports of runs have

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string& value) override {
    if (depth_ != 1 || key_ != "format") return true;
    format = value;
    return false;
  }
  bool binary(nlohmann::json::binary_t&) override { return true; }
  bool start_object(std::size_t) override { return (++depth_, true); }
  bool key(std::string& text) override {
    if (depth_ == 1) key_ = text;
    is_report |= depth_ == 1 && text == "made_tensors";
    return true;
  }
  bool end_object() override { return (--depth_, true); }
  bool start_array(std::size_t) override { return (++depth_, true); }
  bool end_array() override { return (--depth_, true); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  std::size_t depth_ = 0;
  std::string key_;
};

bool is_journal(const std::string& path) {
  std::array<char, kJournalMagic.size()> begin{};
  std::ifstream file(path, std::ios::binary);
  return file.read(begin.data(), begin.size()) && std::string_view(begin.data(), begin.size()) == kJournalMagic;
}

ShownFile::Kind kind_by_name(const std::string& path) {
  if (names_timeline(path)) return ShownFile::Kind::timeline;
  if (path.ends_with(".plan")) return ShownFile::Kind::plan;
  return path.ends_with(".journal") ? ShownFile::Kind::journal : ShownFile::Kind::trace;
}

}  // namespace

Result<ShownFile> open_shown(const std::string& path) {
  if (is_journal(path)) return ShownFile{ShownFile::Kind::journal, path};
  if (kind_by_name(path) == ShownFile::Kind::journal) return ShownFile{ShownFile::Kind::journal, path};
  TRY(std::string content, read_maybe_compressed(path, kMostTraceBytes));
  Head head;
  nlohmann::json::sax_parse(content, &head, nlohmann::json::input_format_t::json, false);
  ShownFile file{kind_by_name(path), path, std::move(content)};
  if (head.format == "spillway-trace")
    file.kind = ShownFile::Kind::trace;
  else if (head.format == "spillway-plan")
    file.kind = ShownFile::Kind::plan;
  else if (head.format == kTimelineFormat)
    file.kind = ShownFile::Kind::timeline;
  else if (head.is_report)
    file.kind = ShownFile::Kind::run_report;
  else if (!head.format.empty())
    return fail(Errc::bad_input,
                fmt::format("{} has the format '{}'; what can be shown are traces, plans, timelines, journals and the "
                            "reports that `spillway run --json` writes",
                            path, head.format));
  return file;
}

}  // namespace spillway
