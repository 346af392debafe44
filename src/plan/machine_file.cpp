#include "plan/machine_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#include <xxhash.h>

#include "base/check.h"
#include "base/files.h"
#include "base/text.h"
#include "plan/flash_geometry.h"
#include "plan/machine_fields.h"
#include "plan/presets.h"

namespace spillway {
namespace {

constexpr Bytes kLargestFile = 1_MiB;

std::unexpected<Error> wrong(const std::string& where, std::string_view why) {
  return fail(Errc::bad_input, fmt::format("cannot read machine {}: {}", where, why));
}

// Numbers are taken as text, so that a key's unit and limits are checked in one place.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto number = node.value_exact<std::int64_t>()) return std::to_string(*number);
  return std::nullopt;
}

std::string line_of(const toml::node& node) { return fmt::format("line {}: ", node.source().begin.line); }

// Name and description are for people; two files with the same values are the same machine.
std::string hash_of(const MachineModel& machine) {
  MachineModel copy = machine;
  std::string values;
  for (const MachineField& field : machine_fields())
    if (field.is_of_plans && field.is_of(machine) && field.of(copy) != field.unhashed)
      values += fmt::format("{}={}\n", field.key, field.of(copy));
  const XXH128_hash_t hash = XXH3_128bits(values.data(), values.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Result<> read_table(MachineModel& machine, std::string_view table_name, const toml::table& table,
                    std::vector<std::string_view>& given, const std::string& where) {
  if (table_name == kOptionalTable) machine.flash.emplace();
  for (const auto& [name, node] : table) {
    const std::string key = fmt::format("{}.{}", table_name, name.str());
    const MachineField* field = find_machine_field(key);
    if (!field)
      return wrong(where, fmt::format("{}unknown key {}; the keys are {}", line_of(node), key, known_machine_keys()));
    const auto text = text_of(node);
    if (!text)
      return wrong(where, fmt::format("{}{}: it must be a text with its unit, like \"{}\"", line_of(node), key,
                                      field_text(*field, field->most)));
    const auto value = parse_field(*field, *text);
    if (!value) return wrong(where, line_of(node) + value.error().message);
    field->of(machine) = *value;
    given.push_back(field->key);
  }
  return {};
}

// toml++ 3.3 ends the program (or, without assertions, assumes the impossible) on a table header whose name does not
// begin as one may, such as "[#". The number of the first such line, from 1; 0 if there is none.
std::size_t line_of_bad_header(std::string_view toml) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  const auto begins_name = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("_-\"'").contains(c);
  };
  for (std::size_t number = 1; !toml.empty(); ++number) {
    std::string_view line = toml.substr(0, toml.find_first_of("\n\r"));
    toml.remove_prefix(std::min(line.size() + 1, toml.size()));
    while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
    if (!line.starts_with('[')) continue;
    line.remove_prefix(1);
    if (line.starts_with('[')) line.remove_prefix(1);
    while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
    if (line.empty() || !begins_name(line.front())) return number;
  }
  return 0;
}

// The first line on which a '[' or '{' follows a '=', outside of texts and comments, or 0. toml++ recurses into arrays
// and inline tables, and ends the program on "[}".
std::size_t line_of_array(std::string_view toml) {
  std::size_t line = 1;
  char quote = 0, before = 0;  // of the text that this is in; the last character that was no blank
  bool in_comment = false;
  for (std::size_t at = 0; at < toml.size(); ++at) {
    const char c = toml[at];
    if (c == '\n') {
      ++line;
      quote = before = 0;
      in_comment = false;
    } else if (in_comment || c == ' ' || c == '\t') {
      continue;
    } else if (quote != 0) {
      if (c == '\\' && quote == '"') ++at;
      if (c == quote) quote = 0;
    } else {
      if ((c == '[' || c == '{') && before == '=') return line;
      if (c == '"' || c == '\'') quote = c;
      in_comment = c == '#';
      before = c;
    }
  }
  return 0;
}

// The first line with more dots than any key, value or comment needs, or 0.
std::size_t line_of_deep_key(std::string_view toml) {
  std::size_t number = 0;
  while (!toml.empty()) {
    ++number;
    const std::size_t end = std::min(toml.find('\n'), toml.size());
    const std::string_view line = toml.substr(0, end);
    if (std::ranges::count(line, '.') > 64) return number;
    toml.remove_prefix(std::min(end + 1, toml.size()));
  }
  return 0;
}

bool has_tables(const toml::table& table) {
  return std::any_of(table.begin(), table.end(), [](const auto& entry) { return entry.second.is_table(); });
}

// `ssd`: in place of the table of that name.
Result<MachineModel> from_table(const toml::table& root, const std::string& where, const toml::table* ssd = nullptr) {
  MachineModel machine;
  std::vector<std::string_view> given;
  for (const auto& [name, node] : root) {
    const bool text_key = name == "name" || name == "description";
    if (text_key) {
      const auto text = node.value_exact<std::string>();
      if (!text) return wrong(where, fmt::format("{}{}: it must be a text", line_of(node), name.str()));
      (name == "name" ? machine.name : machine.description) = *text;
    } else if (name == "ssd" && ssd != nullptr) {
      TRY_VOID(read_table(machine, name.str(), *ssd, given, where));
    } else if (name == "ssd" && node.is_table() && has_tables(*node.as_table())) {
      return wrong(where,
                   line_of(node) + "it holds several SSDs, of which a machine has one; use --machine this --ssd DIR");
    } else if (node.is_table()) {
      TRY_VOID(read_table(machine, name.str(), *node.as_table(), given, where));
    } else {
      return wrong(where, fmt::format("{}unknown key {}; the keys are name, description, {}", line_of(node), name.str(),
                                      known_machine_keys()));
    }
  }
  for (const MachineField& field : machine_fields())
    if (field.required && std::ranges::find(given, field.key) == given.end())
      return wrong(where, fmt::format("{} is missing ({}); add {} to [{}]", field.key, field.meaning, field.name(),
                                      field.table()));
  if (const auto fits = check_machine(machine); !fits) return wrong(where, fits.error().message);
  if (machine.name.empty()) machine.name = where;
  machine.hash = hash_of(machine);
  return machine;
}

Result<toml::table> parse_toml(std::string_view toml, const std::string& where) {
  // A key is nested as deep as it has dots, and the parser recurses; nothing here is deeper than two.
  if (const std::size_t line = line_of_deep_key(toml))
    return wrong(where, fmt::format("line {}: it has too many dots; write keys like device.memory", line));
  if (const std::size_t line = line_of_array(toml))
    return wrong(
        where, fmt::format("line {}: it has an array or inline table; a machine's values are texts and numbers", line));
  // Outside ASCII, toml++ 3.3 runs into undefined behaviour on some keys; a machine needs no such letters.
  const auto strange =
      std::ranges::find_if(toml, [](char c) { return c != '\n' && c != '\r' && c != '\t' && (c < ' ' || c > '~'); });
  if (strange != toml.end())
    return wrong(where,
                 fmt::format("line {}: it holds a byte that is not printable ASCII; write names and comments in ASCII",
                             1 + std::count(toml.begin(), strange, '\n')));
  if (const std::size_t line = line_of_bad_header(toml))
    return wrong(where, fmt::format("line {}: a table's name is missing; write it like [device]", line));
  toml::parse_result parsed = toml::parse(toml, where);
  if (!parsed)
    return wrong(where, fmt::format("line {}: {}", parsed.error().source().begin.line, parsed.error().description()));
  return std::move(parsed).table();
}

}  // namespace

Result<MachineModel> parse_machine(std::string_view toml, const std::string& where) {
  TRY(const toml::table root, parse_toml(toml, where));
  return from_table(root, where);
}

Result<MachineBySsd> parse_machine_by_ssd(std::string_view toml, const std::string& where) {
  TRY(const toml::table root, parse_toml(toml, where));
  const toml::table* all = root["ssd"].as_table();
  if (all == nullptr) return wrong(where, "it holds no SSD; run spillway calibrate again");
  MachineBySsd machines;
  for (const auto& [id, node] : *all) {
    if (!node.is_table()) return wrong(where, fmt::format("{}ssd.{} is no section", line_of(node), id.str()));
    toml::table ssd = *node.as_table();
    MachineWithSsd& entry = machines[std::string(id.str())];
    entry.folder = ssd["folder"].value_or(std::string());
    ssd.erase("folder");
    TRY(entry.machine, from_table(root, where, &ssd));
  }
  return machines;
}

std::span<const std::string_view> machine_presets() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Preset& preset : presets()) all.push_back(preset.name);
    return all;
  }();
  return names;
}

bool names_machine_file(std::string_view name) { return name.contains('/') || name.ends_with(".toml"); }

Result<MachineModel> load_machine(const std::string& name_or_path) {
  for (const Preset& preset : presets())
    if (preset.name == name_or_path) return parse_machine(preset.toml, name_or_path);
  if (names_machine_file(name_or_path)) {
    TRY(const std::string text, read_file(name_or_path, kLargestFile));
    return parse_machine(text, name_or_path);
  }
  return fail(
      Errc::usage,
      fmt::format("there is no machine '{}'; use one of {}, this (the one here, measured), or the path of a .toml file",
                  name_or_path, fmt::join(machine_presets(), ", ")));
}

Result<> check_machine(const MachineModel& machine) {
  if (machine.ssd_capacity() == Bytes{}) return {};
  const BytesPerSecond slowest = std::min(machine.ssd_read(), machine.ssd_write());
  if (slowest < kSlowest)
    return fail(Errc::bad_input, fmt::format("device.count: each of {} devices has {} of the SSDs' rate, less than {}; "
                                             "give fewer devices or faster SSDs",
                                             machine.device.count, to_text(slowest), to_text(kSlowest)));
  if (machine.flash) TRY_VOID(flash_geometry(machine));
  return {};
}

Result<> apply_override(MachineModel& machine, std::string_view key_and_value) {
  const std::size_t equals = key_and_value.find('=');
  if (equals == std::string_view::npos)
    return fail(Errc::usage,
                fmt::format("cannot set '{}': there is no '='; write it like device.memory=20GiB", key_and_value));
  const std::string_view key = key_and_value.substr(0, equals);
  const MachineField* field = find_machine_field(key);
  if (!field)
    return fail(Errc::usage,
                fmt::format("cannot set '{}': a machine has no such key; the keys are {}", key, known_machine_keys()));
  const auto value = parse_field(*field, key_and_value.substr(equals + 1));
  if (!value) return fail(Errc::usage, "cannot set " + value.error().message);
  field->of(machine) = *value;
  machine.overrides.emplace_back(key_and_value);
  machine.hash = hash_of(machine);
  return {};
}

std::vector<MachineValue> values_of(const MachineModel& machine) {
  MachineModel copy = machine;
  std::vector<MachineValue> values;
  for (const MachineField& field : machine_fields())
    if (field.is_of(machine))
      values.push_back({field.key, field.meaning, field.of(copy), field.unit == FieldUnit::duration,
                        field_text(field, field.of(copy))});
  return values;
}

namespace {

// "40GiB" where that is exact, else the number with the smallest unit.
std::string exact_text(const MachineField& field, std::uint64_t value) {
  if (field.unit == FieldUnit::count) return std::to_string(value);
  std::string text = field_text(field, value);
  std::erase(text, ' ');
  const auto read = parse_field(field, text);
  if (read && *read == value) return '"' + text + '"';
  return field.unit == FieldUnit::duration ? fmt::format(R"("{}ns")", value) : std::to_string(value);
}

// The tables of these names.
template <class Wanted>
std::string tables_of(MachineModel machine, Wanted wanted) {
  std::string out;
  std::string_view table;
  for (const MachineField& field : machine_fields()) {
    if (!wanted(field.table()) || !field.is_of(machine)) continue;
    if (std::exchange(table, field.table()) != field.table()) out += fmt::format("\n[{}]\n", table);
    out += fmt::format("{} = {}\n", field.name(), exact_text(field, field.of(machine)));
  }
  return out;
}

// What may stand in a machine file: see parse_toml().
std::string ascii(std::string text) {
  std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}
std::string plain(std::string text) {
  text = ascii(std::move(text));
  std::ranges::replace_if(text, [](char c) { return c == '[' || c == '{'; }, '?');
  return std::ranges::count(text, '.') > 60 ? "" : text;
}

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::value<std::string>(text);
  return out.str();
}

std::string head_of(const MachineModel& machine) {
  return fmt::format("name = {}\ndescription = {}\n", quoted(ascii(machine.name)), quoted(ascii(machine.description)));
}

}  // namespace

std::string to_toml(const MachineModel& machine) {
  return head_of(machine) + tables_of(machine, [](auto) { return true; });
}

std::string to_toml(const MachineBySsd& machines) {
  CHECK(!machines.empty());
  const MachineModel& first = machines.begin()->second.machine;
  std::string out = head_of(first) + tables_of(first, [](std::string_view table) { return table != "ssd"; });
  for (const auto& [id, entry] : machines) {
    std::string section = tables_of(entry.machine, [](std::string_view table) { return table == "ssd"; });
    const std::string header = fmt::format("\n[ssd.{}]\nfolder = {}\n", id, quoted(plain(entry.folder)));
    out += section.replace(0, section.find("]\n") + 2, header);
  }
  return out;
}

}  // namespace spillway
