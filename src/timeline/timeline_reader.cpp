#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "timeline/timeline_file.h"
#include "timeline/timeline_format.h"
#include "trace/compressed.h"
#include "trace/text_of.h"

namespace spillway {
namespace {

using Json = nlohmann::json;

constexpr int kDeepestLine = 3;
constexpr std::uint64_t kMost = UINT64_MAX >> 2;  // of bytes and nanoseconds: two may be added

// One line: an object whose keys are all asked for. The first thing that is wrong is kept; values mean nothing then.
class Line {
 public:
  explicit Line(const Json& object) : object_(object) {}

  bool has(std::string_view key) const { return object_.contains(key); }
  const std::optional<std::string>& error() const { return error_; }
  void wrong(std::string_view key, std::string_view why) {
    if (!error_) error_ = fmt::format("'{}' {}", key, why);
  }

  std::string text(std::string_view key) {
    const Json* value = member(key);
    if (value == nullptr || !value->is_string()) return wrong(key, "must be a text"), "";
    return value->get<std::string>();
  }
  std::uint64_t number(std::string_view key, std::uint64_t most = kMost) {
    const Json* value = member(key);
    return value == nullptr ? 0 : whole(*value, key, most);
  }
  // May be left out, and then has this value.
  bool flag(std::string_view key, bool otherwise) {
    if (!has(key)) return otherwise;
    const Json* value = member(key);
    if (!value->is_boolean()) return wrong(key, "must be true or false"), otherwise;
    return value->get<bool>();
  }
  const Json* object(std::string_view key) {
    const Json* value = member(key);
    if (value == nullptr || !value->is_object()) return wrong(key, "must be an object"), nullptr;
    return value;
  }
  Nanos nanos(std::string_view key) { return {number(key)}; }
  Bytes bytes(std::string_view key) { return {number(key)}; }
  TensorId tensor(std::string_view key, std::size_t tensors) {
    const std::uint64_t value = number(key, UINT32_MAX);
    if (value >= tensors) wrong(key, fmt::format("is {}, and there are {} tensors", value, tensors));
    return {static_cast<std::uint32_t>(value)};
  }
  std::optional<TensorId> tensor_or_null(std::string_view key, std::size_t tensors) {
    const Json* value = member(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    return tensor(key, tensors);
  }
  std::vector<TensorId> tensor_list(std::string_view key, std::size_t tensors) {
    std::vector<TensorId> result;
    for (const Json& item : list(key)) {
      const std::uint64_t value = whole(item, key, UINT32_MAX);
      if (value >= tensors) wrong(key, fmt::format("has {}, and there are {} tensors", value, tensors));
      result.push_back({static_cast<std::uint32_t>(value)});
    }
    return result;
  }
  // By tier; null for no limit.
  PerTier<std::optional<Bytes>> limits(std::string_view key) {
    PerTier<std::optional<Bytes>> result;
    const Json& values = list(key);
    if (values.size() != kTiers.size()) return wrong(key, "must be three numbers: device, host, ssd"), result;
    for (const Tier tier : kTiers)
      if (const Json& value = values[static_cast<std::size_t>(tier)]; !value.is_null())
        result[tier] = Bytes{whole(value, key, kMost)};
    return result;
  }
  PerTier<Bytes> tiers(std::string_view key) {
    PerTier<Bytes> result;
    const auto read = limits(key);
    for (const Tier tier : kTiers) {
      if (!read[tier]) wrong(key, "must be three numbers: device, host, ssd");
      result[tier] = read[tier].value_or(Bytes{});
    }
    return result;
  }
  template <class Value, std::size_t count>
  Value word(std::string_view key, const std::array<Value, count>& values) {
    const std::string given = text(key);
    for (const Value value : values)
      if (to_text(value) == given) return value;
    std::vector<std::string_view> words;
    for (const Value value : values) words.push_back(to_text(value));
    wrong(key, fmt::format("must be one of {}", fmt::join(words, ", ")));
    return values.front();
  }
  void only_asked_keys() {
    for (const auto& [key, value] : object_.items())
      if (std::ranges::find(asked_, key) == asked_.end()) wrong(key, "is not a known key");
  }

 private:
  const Json* member(std::string_view key) {
    asked_.emplace_back(key);
    const auto found = object_.find(key);
    if (found == object_.end()) return wrong(key, "is missing"), nullptr;
    return &*found;
  }
  const Json& list(std::string_view key) {
    static const Json kEmpty = Json::array();
    const Json* value = member(key);
    if (value == nullptr || !value->is_array()) return wrong(key, "must be a list"), kEmpty;
    return *value;
  }
  std::uint64_t whole(const Json& value, std::string_view key, std::uint64_t most) {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() <= most) return value.get<std::uint64_t>();
    wrong(key, fmt::format("must be a whole number from 0 to {}", most));
    return 0;
  }

  const Json& object_;
  std::vector<std::string> asked_;
  std::optional<std::string> error_;
};

constexpr std::array kStalls{Stall::none,          Stall::asked_late, Stall::on_its_way,
                             Stall::behind_others, Stall::no_room,    Stall::other};
constexpr std::array kUrgencies{Urgency::fault, Urgency::need, Urgency::plan};

// Takes line after line into a timeline.
class Taker {
 public:
  std::optional<std::string> take(const Json& object, std::uint64_t number) {
    Line line(object);
    const Kind kind = kind_of(line, number);
    if (number > 1 && kind < kind_)
      line.wrong(name_of(kind), fmt::format("stands after lines of '{}'", name_of(kind_)));
    kind_ = kind;
    if (!line.error()) (this->*kTake[static_cast<std::size_t>(kind)])(line);
    if (kind == Kind::end && !line.error() && lines_ != number)
      line.wrong("lines", fmt::format("is {}, and there are {}", lines_, number));
    line.only_asked_keys();
    return line.error();
  }
  bool is_whole() const { return kind_ == Kind::end; }
  RunTimeline timeline;

 private:
  enum class Kind : std::uint8_t { header, tensor, kernel, transfer, born, freed, level, end, unknown };

  static Kind kind_of(Line& line, std::uint64_t number) {
    if (number == 1) return Kind::header;
    for (const Kind kind :
         {Kind::tensor, Kind::kernel, Kind::transfer, Kind::born, Kind::freed, Kind::level, Kind::end})
      if (line.has(name_of(kind))) return kind;
    line.wrong("tensor", "is missing, and so are kernel, transfer, born, freed, level and lines: one must be there");
    return Kind::unknown;
  }
  static std::string_view name_of(Kind kind) {
    constexpr std::array<std::string_view, 9> kNames{"format", "tensor", "kernel", "transfer", "born",
                                                     "freed",  "level",  "lines",  "?"};
    return kNames[static_cast<std::size_t>(kind)];
  }

  void header(Line& line) {
    if (const std::string format = line.text("format"); format != kTimelineFormat)
      return line.wrong("format", fmt::format("is '{}', not '{}'; is this a timeline?", format, kTimelineFormat));
    if (const std::uint64_t version = line.number("version"); version != kTimelineVersion)
      return line.wrong("version", fmt::format("is {}; this program reads version {}", version, kTimelineVersion));
    static_cast<void>(line.text("spillway"));
    timeline.policy = line.text("policy");
    timeline.machine = line.text("machine");
    timeline.steady = line.flag("steady", true);
    timeline.iteration = line.nanos("iteration_ns");
    timeline.ideal = line.nanos("ideal_ns");
    timeline.capacity = line.limits("capacity_bytes");
    timeline.peak = line.tiers("peak_bytes");
    const Json* trace = line.object("trace");
    if (trace == nullptr) return;
    Line inner(*trace);
    timeline.trace_name = inner.text("name");
    timeline.trace_hash = inner.text("hash");
    inner.only_asked_keys();
    if (inner.error()) line.wrong("trace", "has something wrong: " + *inner.error());
  }
  void tensor(Line& line) {
    if (const std::uint64_t id = line.number("tensor"); id != timeline.tensors.size())
      line.wrong("tensor", fmt::format("is {}, and must be {}: they are numbered", id, timeline.tensors.size()));
    timeline.tensors.push_back({.name = line.text("name"),
                                .bytes = line.bytes("bytes"),
                                .kind = line.word("kind", kTensorKinds),
                                .at_start = line.tiers("at_start")});
  }
  void kernel(Line& line) {
    const std::size_t count = timeline.tensors.size();
    PlayedKernel one{.name = line.text("name"),
                     .kernel = {static_cast<std::uint32_t>(line.number("kernel", UINT32_MAX))},
                     .phase = line.word("phase", kPhases),
                     .is_replay = line.flag("replay", false),
                     .ready = line.nanos("ready_ns"),
                     .start = line.nanos("start_ns"),
                     .end = line.nanos("end_ns"),
                     .reads = line.tensor_list("reads", count),
                     .writes = line.tensor_list("writes", count)};
    if (line.has("stall")) {
      one.stall = line.word("stall", kStalls);
      one.waited_for = line.tensor_or_null("waited_for", count);
      one.cause = line.text("cause");
    }
    const Nanos before = timeline.kernels.empty() ? Nanos{} : timeline.kernels.back().end;
    if (one.ready < before) line.wrong("ready_ns", "is before the kernel before has ended");
    if (one.start < one.ready) line.wrong("start_ns", "is before 'ready_ns'");
    if (one.end < one.start) line.wrong("end_ns", "is before 'start_ns'");
    within(line, "end_ns", one.end);
    timeline.kernels.push_back(std::move(one));
  }
  void transfer(Line& line) {
    PlayedTransfer one{.tensor = line.tensor_or_null("transfer", timeline.tensors.size()),
                       .bytes = line.bytes("bytes"),
                       .from = line.word("from", kTiers),
                       .to = line.word("to", kTiers),
                       .urgency = line.word("urgency", kUrgencies),
                       .queued = line.nanos("queued_ns"),
                       .begin = line.nanos("begin_ns"),
                       .end = line.nanos("end_ns"),
                       .moves = static_cast<std::uint32_t>(line.number("moves", UINT32_MAX)),
                       .copied = line.flag("copied", true),
                       .cancelled = line.flag("cancelled", false),
                       .from_before = line.flag("from_before", false),
                       .goes_on = line.flag("goes_on", false)};
    if (one.from == one.to || (one.from != Tier::device && one.to != Tier::device))
      line.wrong("to", "must be another tier than 'from', and one of them the device");
    if (one.begin < one.queued) line.wrong("begin_ns", "is before 'queued_ns'");
    if (one.end < one.begin) line.wrong("end_ns", "is before 'begin_ns'");
    if (!timeline.transfers.empty() && one.begin < timeline.transfers.back().begin)
      line.wrong("begin_ns", "is before that of the line above");
    within(line, "end_ns", one.end);
    timeline.transfers.push_back(one);
  }
  void life(Line& line, bool born) {
    const PlayedLife one{.at = line.nanos("at_ns"),
                         .tensor = line.tensor(born ? "born" : "freed", timeline.tensors.size()),
                         .born = born};
    if (!timeline.lives.empty() && one.at < timeline.lives.back().at)
      line.wrong("at_ns", "is before that of the line above");
    within(line, "at_ns", one.at);
    timeline.lives.push_back(one);
    kind_ = Kind::born;  // Both may follow.
  }
  void born(Line& line) { life(line, true); }
  void freed(Line& line) { life(line, false); }
  void level(Line& line) {
    const TierLevel one{.at = line.nanos("at_ns"), .bytes = line.tiers("level")};
    if (!timeline.levels.empty() && one.at < timeline.levels.back().at)
      line.wrong("at_ns", "is before that of the line above");
    within(line, "at_ns", one.at);
    timeline.levels.push_back(one);
  }
  void end(Line& line) { lines_ = line.number("lines"); }
  void unknown(Line&) {}

  void within(Line& line, std::string_view key, Nanos at) const {
    if (at > timeline.iteration) line.wrong(key, "is after the iteration's end");
  }

  using Take = void (Taker::*)(Line&);
  static constexpr std::array<Take, 9> kTake{&Taker::header,   &Taker::tensor, &Taker::kernel,
                                             &Taker::transfer, &Taker::born,   &Taker::freed,
                                             &Taker::level,    &Taker::end,    &Taker::unknown};
  Kind kind_ = Kind::header;
  std::uint64_t lines_ = 0;
};

// A key that is there twice would be lost.
Result<Json> parse_line(std::string_view text, const std::string& place) {
  if (nests_deeper(text, kDeepestLine))
    return fail(Errc::bad_input, place + ": it nests deeper than any line of a timeline; is this a timeline?");
  try {
    std::size_t keys = 0;
    Json object = Json::parse(text, [&](int, Json::parse_event_t event, Json&) {
      keys += event == Json::parse_event_t::key ? 1 : 0;
      return true;
    });
    if (!object.is_object()) return fail(Errc::bad_input, place + ": it must be a JSON object");
    std::size_t kept = object.size();
    for (const Json& value : object)
      if (value.is_object()) kept += value.size();
    if (keys != kept) return fail(Errc::bad_input, place + ": a key stands twice in one object; drop one");
    return object;
  } catch (const nlohmann::json::exception& error) {
    return fail(Errc::bad_input, fmt::format("{}: no JSON: {}; is it cut off? make it again with `spillway simulate "
                                             "--timeline`",
                                             place, json_reason(error.what())));
  }
}

}  // namespace

Result<RunTimeline> parse_timeline(std::string_view text, const std::string& where) {
  Taker taker;
  std::uint64_t number = 0;
  while (!text.empty()) {
    const std::string place = fmt::format("{}: line {}", where, ++number);
    if (number > 1 && taker.is_whole())
      return fail(Errc::bad_input, place + ": nothing may follow the line with 'lines'");
    const std::size_t end = text.find('\n');
    TRY(const Json object, parse_line(text.substr(0, end), place));
    if (const auto wrong = taker.take(object, number))
      return fail(Errc::bad_input, fmt::format("{}: {}", place, *wrong));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  if (!taker.is_whole())
    return fail(Errc::bad_input, fmt::format("{}: line {}: the last line, with 'lines', is missing; the file is cut "
                                             "off, copy it or make it again",
                                             where, number + 1));
  return std::move(taker.timeline);
}

Result<RunTimeline> load_timeline(const std::string& path) {
  TRY(const std::string text, read_maybe_compressed(path, kMostTraceBytes));
  return parse_timeline(text, path);
}

}  // namespace spillway
