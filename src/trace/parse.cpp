// Reads trace files with a streaming parser: the text becomes a Trace without a tree in between.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/text.h"
#include "trace/header_scan.h"
#include "trace/parse.h"
#include "trace/text_of.h"

namespace spillway {
namespace {

using Json = nlohmann::json;

// What surrounds the value that is being read.
enum class Place : std::uint8_t {
  outside,
  root,
  tensors,
  tensor,
  kernels,
  kernel,
  accesses,
  access,
  frees,
  replay,
  omits,
  shapes,
  sizes,  // one of these
  count
};

enum class Field : std::uint8_t {
  format,
  version,
  name,
  source,
  estimated,
  tensors,
  kernels,  // of the root
  id,
  tensor_name,
  bytes,
  kind,
  persistent,
  carried_from,  // of a tensor
  kernel_name,
  phase,
  duration,
  gap,
  reads,
  writes,
  frees,
  flops,
  replay,
  shapes,  // of a kernel
  tensor,
  begin,
  end,
  sparse,  // of an access
  omits,   // of a replay
};

struct Key {
  Place place;
  Field field;
  std::string_view text;
  bool required;
  std::uint64_t since = 1;  // which version
};

constexpr std::array kKeys{
    Key{Place::root, Field::format, "format", true},
    Key{Place::root, Field::version, "version", true},
    Key{Place::root, Field::name, "name", true},
    Key{Place::root, Field::source, "source", true},
    Key{Place::root, Field::estimated, "estimated", false, 3},
    Key{Place::root, Field::tensors, "tensors", true},
    Key{Place::root, Field::kernels, "kernels", true},
    Key{Place::tensor, Field::id, "id", true},
    Key{Place::tensor, Field::tensor_name, "name", true},
    Key{Place::tensor, Field::bytes, "bytes", true},
    Key{Place::tensor, Field::kind, "kind", true},
    Key{Place::tensor, Field::persistent, "persistent", true},
    Key{Place::tensor, Field::carried_from, "carried_from", false},
    Key{Place::kernel, Field::kernel_name, "name", true},
    Key{Place::kernel, Field::phase, "phase", true},
    Key{Place::kernel, Field::duration, "duration_ns", true},
    Key{Place::kernel, Field::gap, "gap_ns", false},
    Key{Place::kernel, Field::reads, "reads", true},
    Key{Place::kernel, Field::writes, "writes", true},
    Key{Place::kernel, Field::frees, "frees", false},
    Key{Place::kernel, Field::flops, "flops", false},
    Key{Place::kernel, Field::replay, "replay", false, 2},
    Key{Place::kernel, Field::shapes, "shapes", false, 2},
    Key{Place::replay, Field::omits, "omits", true, 2},
    Key{Place::access, Field::tensor, "tensor", true},
    Key{Place::access, Field::begin, "begin", false},
    Key{Place::access, Field::end, "end", false},
    Key{Place::access, Field::sparse, "sparse", false},
};

std::string keys_of(Place place) {
  std::string text;
  for (const Key& key : kKeys)
    if (key.place == place) text += fmt::format("{}{}", text.empty() ? "" : ", ", key.text);
  return text;
}

constexpr std::size_t kMostAccesses = std::size_t{1} << 24;         // half a GiB of them
constexpr std::size_t kMostSizes = std::size_t{1} << 24;            // and lists of them: as much
constexpr Bytes kWhole{std::numeric_limits<std::uint64_t>::max()};  // an end that is not written: the tensor's size

class Reader : public nlohmann::json_sax<Json> {
 public:
  Trace take() {
    for (Kernel& kernel : trace_.kernels) {
      for (Access& access : kernel.reads) resolve(access);
      for (Access& access : kernel.writes) resolve(access);
    }
    return std::move(trace_);
  }
  const std::string& problem() const { return problem_; }
  bool finished() const { return finished_; }

  bool null() override { return field_is(Place::kernel, Field::flops) || wrong_value("null"); }
  bool boolean(bool value) override {
    if (field_is(Place::tensor, Field::persistent)) return (trace_.tensors.back().persistent = value, true);
    if (field_is(Place::access, Field::sparse)) return (access().sparse = value, true);
    return wrong_value(value ? "true" : "false");
  }
  bool number_integer(std::int64_t value) override {  // only negative ones come here
    return wrong_value(std::to_string(value));
  }
  bool number_unsigned(std::uint64_t value) override;
  bool number_float(double value, const std::string& text) override {
    if (field_is(Place::kernel, Field::flops)) return flops(value);
    return wrong_value(text);
  }
  bool string(std::string& value) override;
  bool binary(Json::binary_t&) override { return wrong_value("binary data"); }
  bool start_object(std::size_t) override;
  bool key(std::string& text) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) override;

 private:
  // Every value inside an object belongs to its last key; a value inside an array belongs to the array.
  bool field_is(Place place, Field field) const { return place_ == place && field_ == field; }
  std::vector<Access>& accesses() {
    return field_ == Field::reads ? trace_.kernels.back().reads : trace_.kernels.back().writes;
  }
  Access& access() { return (in_reads_ ? trace_.kernels.back().reads : trace_.kernels.back().writes).back(); }
  bool flops(double value) { return (trace_.kernels.back().flops = value, true); }

  void resolve(Access& access) const {
    if (access.end == kWhole && access.tensor.value < trace_.tensors.size()) access.end = trace_[access.tensor].bytes;
  }
  bool count_access() {
    return ++access_count_ <= kMostAccesses ||
           wrong(fmt::format("more than {} accesses in all; record one iteration only", kMostAccesses));
  }
  bool count_size() {
    return ++size_count_ <= kMostSizes ||
           wrong(fmt::format("more than {} shapes and sizes in all; record one iteration only", kMostSizes));
  }
  bool wrong(std::string what) {
    problem_ = where() + std::move(what);
    return false;
  }
  bool wrong_value(std::string_view found);
  bool start_sizes();
  std::string where() const;
  std::string_view expected() const;
  std::string_view key_text() const;

  Trace trace_;
  std::size_t access_count_ = 0, size_count_ = 0;
  std::uint64_t version_ = kTraceVersion;
  const Key* newest_key_ = kKeys.begin();
  Place place_ = Place::outside;
  Field field_ = Field::format;
  std::array<std::uint32_t, static_cast<std::size_t>(Place::count)>
      seen_{};  // by place: which keys the current object has had, a bit for each field
  bool in_reads_ = false;
  bool finished_ = false;
  std::string problem_;
};

bool Reader::number_unsigned(std::uint64_t value) {
  const auto id = [&](auto&& store) {
    if (value > std::numeric_limits<std::uint32_t>::max()) return wrong_value(std::to_string(value));
    store(TensorId{static_cast<std::uint32_t>(value)});
    return true;
  };
  switch (place_) {
    case Place::root:
      if (field_ == Field::version)
        return (version_ = value, 1 <= value && value <= kTraceVersion) ||
               wrong(fmt::format("version {} is unknown; this program reads versions 1 to {}", value, kTraceVersion));
      break;
    case Place::tensor: {
      Tensor& tensor = trace_.tensors.back();
      if (field_ == Field::id)
        return value == trace_.tensors.size() - 1 ||
               wrong(fmt::format("id is {} but must be {}: ids count from 0 in order, each once", value,
                                 trace_.tensors.size() - 1));
      if (field_ == Field::bytes) return (tensor.bytes = {value}, true);
      if (field_ == Field::carried_from) return id([&](TensorId from) { tensor.carried_from = from; });
      break;
    }
    case Place::kernel:
      if (field_ == Field::duration) return (trace_.kernels.back().duration = {value}, true);
      if (field_ == Field::gap) return (trace_.kernels.back().gap = {value}, true);
      if (field_ == Field::flops) return flops(static_cast<double>(value));
      break;
    case Place::accesses:
      return id([&](TensorId tensor) { accesses().push_back({.tensor = tensor, .end = kWhole}); }) && count_access();
    case Place::frees:
      return id([&](TensorId tensor) { trace_.kernels.back().frees.push_back(tensor); });
    case Place::omits:
      return id([&](TensorId tensor) { trace_.kernels.back().replay->omits.push_back(tensor); });
    case Place::sizes:
      return (trace_.kernels.back().shapes.back().push_back(value), true) && count_size();
    case Place::access:
      if (field_ == Field::tensor) return id([&](TensorId tensor) { access().tensor = tensor; });
      if (field_ == Field::begin) return (access().begin = {value}, true);
      if (field_ == Field::end && Bytes{value} != kWhole) return (access().end = {value}, true);
      break;
    default:
      break;
  }
  return wrong_value(std::to_string(value));
}

bool Reader::string(std::string& value) {
  if (field_is(Place::root, Field::format)) return value == kTraceFormat || wrong_value(value);
  if (field_is(Place::root, Field::name)) return (trace_.name = std::move(value), true);
  if (field_is(Place::root, Field::source)) return (trace_.source = std::move(value), true);
  if (field_is(Place::root, Field::estimated))
    return value.empty() ? wrong_value("empty") : (trace_.estimated = std::move(value), true);
  if (field_is(Place::tensor, Field::tensor_name)) return (trace_.tensors.back().name = std::move(value), true);
  if (field_is(Place::kernel, Field::kernel_name)) return (trace_.kernels.back().name = std::move(value), true);
  if (field_is(Place::tensor, Field::kind)) {
    const auto found = tensor_kind(value);
    if (found) trace_.tensors.back().kind = *found;
    return found || wrong_value(value);
  }
  if (field_is(Place::kernel, Field::phase)) {
    const auto found = phase(value);
    if (found) trace_.kernels.back().phase = *found;
    return found || wrong_value(value);
  }
  return wrong_value(value);
}

bool Reader::start_object(std::size_t) {
  switch (place_) {
    case Place::outside:
      place_ = Place::root;
      break;
    case Place::tensors:
      trace_.tensors.emplace_back();
      place_ = Place::tensor;
      break;
    case Place::kernels:
      trace_.kernels.emplace_back();
      place_ = Place::kernel;
      break;
    case Place::accesses:
      in_reads_ = field_ == Field::reads;
      accesses().push_back({.tensor = {}, .end = kWhole});
      place_ = Place::access;
      if (!count_access()) return false;
      break;
    case Place::kernel:
      if (field_ != Field::replay) return wrong_value("an object");
      trace_.kernels.back().replay.emplace();
      place_ = Place::replay;
      break;
    default:
      return wrong_value("an object");
  }
  seen_[static_cast<std::size_t>(place_)] = 0;
  return true;
}

bool Reader::key(std::string& text) {
  const auto* const key = std::ranges::find_if(
      kKeys, [&](const Key& candidate) { return candidate.place == place_ && candidate.text == text; });
  if (key == kKeys.end()) return wrong(fmt::format("unknown key '{}'; the keys here are {}", text, keys_of(place_)));
  std::uint32_t& seen = seen_[static_cast<std::size_t>(place_)];
  const std::uint32_t bit = 1u << static_cast<unsigned>(key->field);
  if ((seen & bit) != 0) return wrong(fmt::format("key '{}' is there twice; write it once", text));
  seen |= bit;
  field_ = key->field;
  if (key->since > newest_key_->since) newest_key_ = key;
  return true;
}

bool Reader::end_object() {
  for (const Key& key : kKeys) {
    const bool missing = (seen_[static_cast<std::size_t>(place_)] & (1u << static_cast<unsigned>(key.field))) == 0;
    if (key.place == place_ && key.required && missing)
      return wrong(fmt::format("key '{}' is missing; write it", key.text));
  }
  switch (place_) {
    case Place::root:
      if (version_ < newest_key_->since)
        return wrong(fmt::format("version {} has no key '{}'; write version {}", version_, newest_key_->text,
                                 newest_key_->since));
      place_ = Place::outside;
      finished_ = true;
      break;
    case Place::tensor:
      place_ = Place::tensors;
      break;
    case Place::replay:
      place_ = Place::kernel;
      break;
    case Place::kernel:
      place_ = Place::kernels;
      break;
    default:
      place_ = Place::accesses;
      field_ = in_reads_ ? Field::reads : Field::writes;
  }
  return true;
}

bool Reader::start_array(std::size_t) {
  if (field_is(Place::root, Field::tensors))
    place_ = Place::tensors;
  else if (field_is(Place::root, Field::kernels))
    place_ = Place::kernels;
  else if (field_is(Place::kernel, Field::reads) || field_is(Place::kernel, Field::writes))
    place_ = Place::accesses;
  else if (field_is(Place::kernel, Field::frees))
    place_ = Place::frees;
  else if (field_is(Place::kernel, Field::shapes))
    place_ = Place::shapes;
  else if (field_is(Place::replay, Field::omits))
    place_ = Place::omits;
  else if (place_ == Place::shapes)
    return start_sizes();
  else
    return wrong_value("an array");
  return true;
}

bool Reader::start_sizes() {
  trace_.kernels.back().shapes.emplace_back();
  place_ = Place::sizes;
  return count_size();
}

bool Reader::end_array() {
  switch (place_) {
    case Place::tensors:
    case Place::kernels:
      place_ = Place::root;
      break;
    case Place::omits:
      place_ = Place::replay;
      break;
    case Place::sizes:
      place_ = Place::shapes;
      break;
    default:
      place_ = Place::kernel;
  }
  return true;
}

bool Reader::parse_error(std::size_t position, const std::string&, const Json::exception& error) {
  std::string_view why = json_reason(error.what());
  constexpr std::size_t kShown = 300;  // It may quote a number or text of any length.
  const std::string_view more = why.size() > kShown ? "…" : "";
  why = why.substr(0, kShown);
  constexpr int kOutOfRange = 406;
  problem_ = error.id == kOutOfRange
                 ? fmt::format("byte {}: {}{}; write its true value", position, why, more)
                 : fmt::format("byte {}: it is not JSON in UTF-8: {}{}; if it was cut off, copy or make it again",
                               position, why, more);
  return false;
}

std::string Reader::where() const {
  switch (place_) {
    case Place::outside:
    case Place::root:
    case Place::tensors:
    case Place::kernels:
      return "";
    case Place::tensor: {
      const std::string& name = trace_.tensors.back().name;
      return fmt::format("tensor {}{}: ", trace_.tensors.size() - 1, in_brackets(name));
    }
    default: {
      const std::string& name = trace_.kernels.back().name;
      return fmt::format("kernel {}{}: ", trace_.kernels.size() - 1, in_brackets(name));
    }
  }
}

std::string_view Reader::key_text() const {
  for (const Key& key : kKeys)
    if (key.field == field_) return key.text;
  return "";
}

bool Reader::wrong_value(std::string_view found) {
  constexpr std::size_t kMostShown = 60;
  std::string shown(found.substr(0, kMostShown));
  if (found.size() > kMostShown) shown += "...";
  if (place_ == Place::outside) return wrong(fmt::format("it is {} but a trace is one JSON object", shown));
  if (place_ == Place::tensors || place_ == Place::kernels)
    return wrong(
        fmt::format("'{}' holds {} but must hold objects", place_ == Place::tensors ? "tensors" : "kernels", shown));
  return wrong(fmt::format("{} is {} but must be {}", key_text(), shown, expected()));
}

std::string_view Reader::expected() const {
  if (place_ == Place::accesses) return "a list of tensor ids or of objects with tensor, begin, end, sparse";
  if (place_ == Place::frees || place_ == Place::omits) return "a list of tensor ids";
  if (place_ == Place::shapes || place_ == Place::sizes) return "a list of lists of sizes, whole numbers from 0";
  switch (field_) {
    case Field::format:
      return "'spillway-trace'";
    case Field::version:
      return "the number 1, 2 or 3";
    case Field::name:
    case Field::source:
    case Field::tensor_name:
    case Field::kernel_name:
      return "a string";
    case Field::estimated:
      return "a string that says how, or is left out";
    case Field::tensors:
    case Field::kernels:
      return "an array of objects";
    case Field::id:
    case Field::carried_from:
    case Field::tensor:
      return "a tensor's id, a whole number from 0";
    case Field::bytes:
      return "a whole number of bytes from 1 to 2^63";
    case Field::kind:
      return "weight, gradient, optimizer_state, activation, input, workspace or other";
    case Field::persistent:
    case Field::sparse:
      return "true or false";
    case Field::phase:
      return "forward, backward, optimizer or other";
    case Field::duration:
    case Field::gap:
      return "a whole number of nanoseconds from 0 to 2^57";
    case Field::reads:
    case Field::writes:
    case Field::frees:
    case Field::shapes:
    case Field::omits:
      return "an array";
    case Field::replay:
      return "an object with omits";
    case Field::flops:
      return "a finite number of at least 0, or null";
    case Field::begin:
    case Field::end:
      return "a whole number of bytes from 0 to the tensor's size";
  }
  return "something else";
}

}  // namespace

Result<Trace> read_trace_json(std::string_view json, const std::string& where) {
  const auto wrong = [&](std::string_view what) {
    return fail(Errc::bad_input, fmt::format("cannot read trace {}: {}", where, what));
  };
  if (json.empty()) return wrong("it is empty; make it again");
  Reader reader;
  if (Json::sax_parse(json, &reader) && reader.finished()) return reader.take();
  if (reader.problem().starts_with("byte ")) return wrong(reader.problem());
  // A file of another kind or version breaks rules of this one: say that, not which.
  const TraceHeader header = scan_header(json);
  if (header.format != kTraceFormat)
    return wrong(fmt::format("it is not a trace: its 'format' is {}; spillway import and spillway trace make traces",
                             header.format.empty() ? "missing" : "'" + header.format + "'"));
  bool is_known = header.version.empty();
  for (std::uint64_t version = 1; version <= kTraceVersion; ++version)
    is_known |= header.version == std::to_string(version);
  if (!is_known)
    return wrong(
        fmt::format("its version is {}, and this program reads versions 1 to {}; make it again, or update "
                    "Spillway",
                    header.version, kTraceVersion));
  return wrong(reader.problem());
}

}  // namespace spillway
