#include "import/dtr.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "import/assembly.h"
#include "trace/validate.h"

namespace spillway {
namespace {

using Json = nlohmann::json;

constexpr int kDeepestDtr = 2;                                    // an object with lists
constexpr std::size_t kLongestDtrLine = std::size_t{1} << 20;     // a call's results and arguments
constexpr std::uint64_t kMostDtrNumber = std::uint64_t{1} << 62;  // nanoseconds or bytes

// What stands before it is no part of the iteration; a log without it is all of it.
constexpr std::string_view kStart = "\"START\"";
bool is_start(std::string_view line) {
  if (!line.contains(kStart) || line.size() > kLongestDtrLine || nests_deeper(line, kDeepestDtr)) return false;
  const Json object = Json::parse(line, nullptr, false);
  return object.is_object() && object.value("INSTRUCTION", Json()) == "ANNOTATE" &&
         object.value("ANNOTATION", Json()) == "START";
}
bool has_start(std::string_view text) {
  while (!text.empty())
    if (is_start(take_line(text))) return true;
  return false;
}

class DtrReader {
 public:
  DtrReader(std::string_view text, const std::string& where, const std::string& name)
      : rest_(text), where_(where), assembly_(name, "dtr"), before_start_(has_start(text)) {}

  Result<Trace> run() {
    while (!rest_.empty()) {
      ++line_number_;
      const std::string_view line = take_line(rest_);
      if (std::exchange(before_start_, before_start_ && !is_start(line)) || line.empty()) continue;
      TRY_VOID(read_line(line));
      if (assembly_.too_large()) return wrong("the log has more uses than we read; cut it to one iteration");
    }
    if (!awaited_.empty()) return wrong("the log ends before a CALL's last MEMORY and ALIAS; make the log again");
    return finish();
  }

 private:
  // What a name stands for: nothing if it has no bytes.
  struct Storage {
    std::optional<TensorId> tensor = {};
    std::size_t names = 0;  // that stand for it
    bool constant = false;
  };
  // A result whose MEMORY and ALIAS follow.
  struct Awaited {
    std::string name;
    std::optional<std::uint64_t> bytes = {};
    bool constant = false;
  };

  std::unexpected<Error> wrong(std::string_view what) const {
    return fail(Errc::bad_input, fmt::format("cannot import {}: line {}: {}", where_, line_number_, what));
  }

  Result<> read_line(std::string_view line) {
    if (line.size() > kLongestDtrLine) return wrong("it is longer than 1 MiB; name a log of DTR's prototype");
    if (nests_deeper(line, kDeepestDtr)) return wrong("it nests deeper than a log does; name a log of DTR's prototype");
    const Json object = Json::parse(line, nullptr, false);
    if (!object.is_object()) return wrong("it is no JSON object; name a log of DTR's prototype, made with its log on");
    TRY(const std::string instruction, text_at(object, "INSTRUCTION"));
    if (!awaited_.empty() && instruction != "MEMORY" && instruction != "ALIAS")
      return wrong(fmt::format("{} stands where MEMORY or ALIAS of '{}' must; make the log again", instruction,
                               awaited_[next_].name));
    if (instruction == "CALL") return read_call(object);
    if (instruction == "MUTATE") return read_mutate(object);
    if (instruction == "MEMORY") return read_memory(object);
    if (instruction == "ALIAS") return read_alias(object);
    if (instruction == "ANNOTATE") return read_annotation(object);
    if (instruction == "CONSTANT") {
      TRY(std::string name, text_at(object, "NAME"));
      await({{.name = std::move(name), .constant = true}});
      return {};
    }
    if (instruction == "RELEASE") {
      TRY(const std::string name, text_at(object, "NAME"));
      forget(name);  // names from before the log are released, too
      return {};
    }
    if (instruction == "COPY" || instruction == "COPY_FROM") {
      TRY(const std::string to, text_at(object, "DST"));
      TRY(const std::string from, text_at(object, "SRC"));
      TRY(const std::size_t storage, storage_of(from));
      if (instruction == "COPY" && names_.contains(to))
        return wrong(fmt::format("'{}' is copied to '{}', which is there already; make the log again", from, to));
      name_it(to, storage);
      return {};
    }
    return wrong(fmt::format("the instruction '{}' is none that we read; name a log of DTR's prototype", instruction));
  }

  Result<std::string> text_at(const Json& object, const char* key) const {
    const auto value = object.find(key);
    if (value == object.end() || !value->is_string())
      return wrong(fmt::format("'{}' is missing or no text; make the log again", key));
    return value->get<std::string>();
  }

  // They write numbers as text.
  Result<std::int64_t> number_at(const Json& object, const char* key) const {
    TRY(const std::string text, text_at(object, key));
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number < -1 ||
        number > static_cast<std::int64_t>(kMostDtrNumber))
      return wrong(fmt::format("'{}' is no whole number below 2^62; make the log again", key));
    return number;
  }

  Result<std::vector<std::string>> names_at(const Json& object, const char* key) const {
    const auto list = object.find(key);
    if (list == object.end() || !list->is_array())
      return wrong(fmt::format("'{}' is missing or no list; make the log again", key));
    std::vector<std::string> names;
    for (const Json& one : *list) {
      if (!one.is_string()) return wrong(fmt::format("'{}' holds something else than names; make the log again", key));
      names.push_back(one.get<std::string>());
    }
    return names;
  }

  Result<std::size_t> storage_of(const std::string& name) const {
    const auto found = names_.find(name);
    if (found == names_.end())
      return wrong(
          fmt::format("'{}' is used before the log makes it, or after it is released; make the log again, and "
                      "let it begin before the model is made",
                      name));
    return found->second;
  }

  Result<Nanos> time_at(const Json& object) const {
    TRY(const std::int64_t time, number_at(object, "TIME"));
    if (time < 0) return wrong("'TIME' is below 0; make the log again");
    return Nanos{static_cast<std::uint64_t>(time)};
  }

  Result<> read_annotation(const Json& object) {
    TRY(const std::string annotation, text_at(object, "ANNOTATION"));
    if (annotation == "BACKWARD") backward_ = true;
    return {};
  }

  Result<> read_arguments(const Json& object) {
    TRY(const std::vector<std::string> names, names_at(object, "ARGS"));
    arguments_.clear();
    for (const std::string& name : names) {
      TRY(const std::size_t storage, storage_of(name));
      arguments_.push_back(storage);
    }
    return {};
  }

  void begin(std::string name, Nanos time) {
    assembly_.begin(std::move(name), backward_ ? Phase::backward : Phase::forward, time,
                    std::exchange(viewing_, Nanos{}));
    for (const std::size_t argument : arguments_)
      if (storages_[argument].tensor) assembly_.read(*storages_[argument].tensor);
  }

  Result<> read_mutate(const Json& object) {
    TRY_VOID(read_arguments(object));
    TRY(std::string name, text_at(object, "NAME"));
    TRY(const Nanos time, time_at(object));
    const auto list = object.find("MUTATE");
    if (list == object.end() || !list->is_array()) return wrong("'MUTATE' is missing or no list; make the log again");
    begin(std::move(name), time);
    for (const Json& one : *list) {
      if (!one.is_number_unsigned() || one.get<std::uint64_t>() >= arguments_.size())
        return wrong("'MUTATE' names an argument that there is not; make the log again");
      if (const auto tensor = storages_[arguments_[one.get<std::size_t>()]].tensor) assembly_.write(*tensor);
    }
    return {};
  }

  Result<> read_call(const Json& object) {
    TRY_VOID(read_arguments(object));
    TRY(call_, text_at(object, "NAME"));
    TRY(time_, time_at(object));
    TRY(std::vector<std::string> results, names_at(object, "RESULT"));
    std::vector<Awaited> awaited;
    for (std::string& result : results) awaited.push_back({.name = std::move(result)});
    made_.clear();
    if (awaited.empty()) begin(std::exchange(call_, {}), time_);
    await(std::move(awaited));
    return {};
  }

  void await(std::vector<Awaited> awaited) {
    awaited_ = std::move(awaited);
    next_ = 0;
  }

  Result<> read_memory(const Json& object) {
    TRY(const std::string name, text_at(object, "NAME"));
    TRY(const std::int64_t bytes, number_at(object, "MEMORY"));
    if (awaited_.empty() || awaited_[next_].name != name || awaited_[next_].bytes || bytes < 0)
      return wrong(
          fmt::format("MEMORY of '{}' does not follow what makes it, or is below 0; make the log again", name));
    awaited_[next_].bytes = static_cast<std::uint64_t>(bytes);
    if (!awaited_[next_].constant) return {};
    const Awaited constant = std::move(awaited_[next_]);
    awaited_.clear();
    return make(constant.name, *constant.bytes, true);
  }

  Result<> read_alias(const Json& object) {
    TRY(const std::string name, text_at(object, "NAME"));
    TRY(const std::int64_t alias, number_at(object, "ALIAS"));
    if (awaited_.empty() || awaited_[next_].name != name || !awaited_[next_].bytes)
      return wrong(fmt::format("ALIAS of '{}' does not follow its MEMORY; make the log again", name));
    if (alias >= 0) {
      if (static_cast<std::size_t>(alias) >= arguments_.size())
        return wrong(fmt::format("'{}' is an alias of an argument that there is not; make the log again", name));
      name_it(name, arguments_[static_cast<std::size_t>(alias)]);
    } else {
      TRY_VOID(make(name, *awaited_[next_].bytes, false));
      made_.push_back(storages_.size() - 1);
    }
    if (++next_ == awaited_.size()) end_call();
    return {};
  }

  Result<> make(const std::string& name, std::uint64_t bytes, bool constant) {
    if (names_.contains(name)) return wrong(fmt::format("'{}' is made a second time; make the log again", name));
    Storage storage{.constant = constant};
    if (bytes > 0) storage.tensor = assembly_.add(name, {bytes});
    storages_.push_back(storage);
    name_it(name, storages_.size() - 1);
    return {};
  }

  // What only makes views is no kernel: its time is the host's.
  void end_call() {
    awaited_.clear();
    if (made_.empty()) {
      viewing_ = std::min(viewing_ + time_, kMostIterationTime);
      return;
    }
    begin(std::exchange(call_, {}), time_);
    for (const std::size_t made : made_)
      if (storages_[made].tensor) assembly_.write(*storages_[made].tensor);
  }

  void name_it(const std::string& name, std::size_t storage) {
    ++storages_[storage].names;
    forget(name);
    names_.emplace(name, storage);
  }

  void forget(const std::string& name) {
    const auto found = names_.find(name);
    if (found == names_.end()) return;
    Storage& storage = storages_[found->second];
    names_.erase(found);
    if (--storage.names == 0 && storage.tensor) assembly_.release(*storage.tensor);
  }

  // What has a name at the end lives on: constants in the next iteration, too.
  Result<Trace> finish() {
    for (const Storage& storage : storages_) {
      if (!storage.tensor || storage.names == 0) continue;
      if (storage.constant)
        assembly_.keep(*storage.tensor);
      else
        assembly_.release(*storage.tensor);
    }
    return std::move(assembly_).finish("cannot import " + where_);
  }

  std::string_view rest_;
  const std::string& where_;
  std::size_t line_number_ = 0;
  Assembly assembly_;
  std::unordered_map<std::string, std::size_t> names_;
  std::vector<Storage> storages_;
  std::vector<Awaited> awaited_;
  std::size_t next_ = 0;
  // Of the call whose results are awaited.
  std::string call_;
  Nanos time_;
  std::vector<std::size_t> arguments_, made_;
  Nanos viewing_{};  // since the last kernel
  bool backward_ = false;
  bool before_start_;
};

}  // namespace

Result<Trace> parse_dtr(std::string_view text, const std::string& where, const std::string& name) {
  return DtrReader(text, where, name).run();
}

}  // namespace spillway
