#include "plan/plan_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>

#include "base/check.h"
#include "base/files.h"
#include "base/text.h"
#include "base/version.h"

namespace spillway {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "spillway-plan";
constexpr std::uint64_t kVersionOfFormat = 4;
constexpr Bytes kMostPlanBytes = 64_MiB;  // a million commands
constexpr int kDeepest = 8;

// Reads members of one object and says where it failed.
class Reader {
 public:
  Reader(const Json& object, std::string place) : object_(object), place_(std::move(place)) {}

  Result<const Json*> member(std::string_view key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) return wrong(key, "is missing; add it");
    return &*found;
  }
  Result<std::string> text(std::string_view key) const {
    TRY(const Json* value, member(key));
    if (!value->is_string()) return wrong(key, "must be a text");
    return value->get<std::string>();
  }
  Result<std::uint64_t> number(std::string_view key, std::uint64_t most) const {
    TRY(const Json* value, member(key));
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() > most)
      return wrong(key, fmt::format("must be a whole number from 0 to {}", most));
    return value->get<std::uint64_t>();
  }
  // May be left out if it does not hold.
  Result<bool> flag(std::string_view key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) return false;
    if (!found->is_boolean()) return wrong(key, "must be true or false; it may be left out");
    return found->get<bool>();
  }
  // May be left out.
  Result<std::optional<std::uint64_t>> optional_number(std::string_view key, std::uint64_t most) const {
    if (!object_.contains(key)) return std::nullopt;
    TRY(const std::uint64_t value, number(key, most));
    return value;
  }
  Result<> only(std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : object_.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        return wrong(key, fmt::format("is not a known key; the keys are {}", fmt::join(known, ", ")));
    return {};
  }
  std::unexpected<Error> wrong(std::string_view key, std::string_view why) const {
    return fail(Errc::bad_input, fmt::format("{}: '{}' {}", place_, key, why));
  }

 private:
  const Json& object_;
  std::string place_;
};

Result<Tier> tier(const Reader& reader) {
  TRY(const std::string name, reader.text("to"));
  if (name == "host") return Tier::host;
  if (name == "ssd") return Tier::ssd;
  return reader.wrong("to", "must be \"host\" or \"ssd\"");
}

template <class Name>
Result<Name> id(const Reader& reader, std::string_view key) {
  TRY(const std::uint64_t value, reader.number(key, UINT32_MAX));
  return Name{static_cast<std::uint32_t>(value)};
}

Result<Nanos> delay(const Reader& reader) {
  TRY(const auto value, reader.optional_number("delay_ns", UINT64_MAX >> 2));
  return Nanos{value.value_or(0)};
}

Result<std::optional<KernelId>> awaited_by(const Reader& reader) {
  TRY(const auto value, reader.optional_number("awaited_by", UINT32_MAX));
  return value ? std::optional(KernelId{static_cast<std::uint32_t>(*value)}) : std::nullopt;
}

std::string more_of(Nanos delay, std::optional<KernelId> awaited_by) {
  return (delay > Nanos{} ? fmt::format(", \"delay_ns\": {}", delay.value) : "") +
         (awaited_by ? fmt::format(", \"awaited_by\": {}", awaited_by->value) : "");
}

// Calls `add` for each object of the list under `key`.
template <class Add>
Result<> each(const Json& root, const std::string& where, std::string_view key, Add add) {
  TRY(const Json* list, Reader(root, where).member(key));
  if (!list->is_array()) return Reader(root, where).wrong(key, "must be a list");
  std::size_t index = 0;
  for (const Json& item : *list) {
    const std::string place = fmt::format("{}: {}[{}]", where, key, index++);
    if (!item.is_object()) return fail(Errc::bad_input, place + " must be an object");
    TRY_VOID(add(Reader(item, place)));
  }
  return {};
}

Result<std::pair<std::string, std::string>> name_and_hash(const Json& root, const std::string& where,
                                                          std::string_view key) {
  TRY(const Json* value, Reader(root, where).member(key));
  if (!value->is_object()) return Reader(root, where).wrong(key, "must be an object");
  const Reader reader(*value, fmt::format("{}: {}", where, key));
  TRY_VOID(key == "trace" ? reader.only({"name", "hash", "shape"}) : reader.only({"name", "hash", "overrides"}));
  TRY(std::string name, reader.text("name"));
  TRY(std::string hash, reader.text("hash"));
  return std::pair{std::move(name), std::move(hash)};
}

Result<TraceShape> shape_of(const Json& trace, const std::string& where) {
  const Reader outer(trace, where + ": trace");
  TRY(const Json* value, outer.member("shape"));
  if (!value->is_object()) return outer.wrong("shape", "must be an object");
  const Reader reader(*value, where + ": trace: shape");
  TRY_VOID(reader.only({"kernels", "tensors", "names", "uses"}));
  TraceShape shape;
  TRY(shape.kernels, reader.number("kernels", UINT32_MAX));
  TRY(shape.tensors, reader.number("tensors", UINT32_MAX));
  TRY(shape.names, reader.text("names"));
  TRY(shape.uses, reader.text("uses"));
  return shape;
}

// What was asked of --set when the plan was made; may be left out.
Result<std::vector<std::string>> overrides_of(const Json& machine, const std::string& where) {
  const Reader reader(machine, where + ": machine");
  std::vector<std::string> overrides;
  const auto found = machine.find("overrides");
  if (found == machine.end()) return overrides;
  if (!found->is_array()) return reader.wrong("overrides", "must be a list of texts");
  for (const Json& change : *found) {
    if (!change.is_string()) return reader.wrong("overrides", "must be a list of texts");
    overrides.push_back(change.get<std::string>());
  }
  return overrides;
}

Result<std::optional<double>> seconds_of(const Reader& reader, const Json& root) {
  const auto found = root.find("predicted_seconds");
  if (found == root.end() || found->is_null()) return std::nullopt;
  const double value = found->is_number() ? found->get<double>() : -1;
  if (!std::isfinite(value) || value < 0)
    return reader.wrong("predicted_seconds", "must be a number of at least 0; it may be left out");
  return value;
}

Result<Plan> read(const Json& root, const std::string& where) {
  if (!root.is_object()) return fail(Errc::bad_input, where + ": a plan is a JSON object");
  const Reader reader(root, where);
  TRY(const std::string format, reader.text("format"));
  if (format != kFormat)
    return reader.wrong("format", fmt::format("is '{}', not '{}'; is this a plan?", format, kFormat));
  TRY(const std::uint64_t version, reader.number("version", UINT32_MAX));
  if (version != kVersionOfFormat)
    return reader.wrong("version", fmt::format("is {}; this program reads version {}", version, kVersionOfFormat));
  TRY_VOID(reader.only({"format", "version", "spillway", "policy", "trace", "machine", "overcommitted_bytes",
                        "predicted_seconds", "evictions", "prefetches", "recomputations"}));
  Plan plan;
  TRY(plan.policy, reader.text("policy"));
  TRY(std::tie(plan.trace_name, plan.trace_hash), name_and_hash(root, where, "trace"));
  TRY(plan.trace_shape, shape_of(root["trace"], where));
  TRY(std::tie(plan.machine_name, plan.machine_hash), name_and_hash(root, where, "machine"));
  TRY(plan.machine_overrides, overrides_of(root["machine"], where));
  TRY(plan.overcommitted.value, reader.number("overcommitted_bytes", UINT64_MAX >> 1));
  TRY(plan.predicted_seconds, seconds_of(reader, root));
  const auto add_eviction = [&](const Reader& item) -> Result<> {
    TRY_VOID(item.only({"tensor", "after_kernel", "to", "delay_ns", "during", "awaited_by"}));
    Eviction eviction;
    TRY(eviction.tensor, id<TensorId>(item, "tensor"));
    TRY(eviction.after, id<KernelId>(item, "after_kernel"));
    TRY(eviction.to, tier(item));
    TRY(eviction.delay, delay(item));
    TRY(eviction.during, item.flag("during"));
    TRY(eviction.awaited_by, awaited_by(item));
    plan.evictions.push_back(eviction);
    return {};
  };
  const auto add_prefetch = [&](const Reader& item) -> Result<> {
    TRY_VOID(item.only({"tensor", "at_kernel", "keeps_copy", "delay_ns", "awaited_by"}));
    Prefetch prefetch;
    TRY(prefetch.tensor, id<TensorId>(item, "tensor"));
    TRY(prefetch.at, id<KernelId>(item, "at_kernel"));
    TRY(prefetch.keeps_copy, item.flag("keeps_copy"));
    TRY(prefetch.delay, delay(item));
    TRY(prefetch.awaited_by, awaited_by(item));
    plan.prefetches.push_back(prefetch);
    return {};
  };
  const auto add_recomputation = [&](const Reader& item) -> Result<> {
    TRY_VOID(item.only({"tensor", "drop_after", "before", "kernels"}));
    Recomputation recomputation;
    TRY(recomputation.tensor, id<TensorId>(item, "tensor"));
    TRY(recomputation.drop_after, id<KernelId>(item, "drop_after"));
    TRY(recomputation.before, id<KernelId>(item, "before"));
    TRY(const Json* kernels, item.member("kernels"));
    if (!kernels->is_array()) return item.wrong("kernels", "must be a list of kernels");
    for (const Json& kernel : *kernels) {
      if (!kernel.is_number_unsigned() || kernel.get<std::uint64_t>() > UINT32_MAX)
        return item.wrong("kernels", "must be a list of kernels");
      recomputation.kernels.push_back({kernel.get<std::uint32_t>()});
    }
    plan.recomputations.push_back(std::move(recomputation));
    return {};
  };
  TRY_VOID(each(root, where, "evictions", add_eviction));
  TRY_VOID(each(root, where, "prefetches", add_prefetch));
  if (root.contains("recomputations")) TRY_VOID(each(root, where, "recomputations", add_recomputation));
  return plan;
}

}  // namespace

Result<Plan> parse_plan(std::string_view json, const std::string& where) {
  if (nests_deeper(json, kDeepest))
    return fail(Errc::bad_input, fmt::format("{}: nested deeper than any plan is; is this a plan?", where));
  try {
    std::vector<std::set<std::string>> open;  // the keys so far of each object that is being read
    std::string twice;
    const Json root = Json::parse(json, [&](int, Json::parse_event_t event, Json& parsed) {
      if (event == Json::parse_event_t::object_start) open.emplace_back();
      if (event == Json::parse_event_t::object_end) open.pop_back();
      if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
        twice = parsed.get<std::string>();
      return true;
    });
    if (!twice.empty())
      return fail(Errc::bad_input, fmt::format("{}: the key '{}' stands twice in one object; drop one", where, twice));
    return read(root, where);
  } catch (const nlohmann::json::exception& error) {
    return fail(Errc::bad_input, fmt::format("{}: not a plan in JSON: {}; is it cut off? make it again with "
                                             "`spillway plan -o`",
                                             where, json_reason(error.what())));
  }
}

Result<> save_plan(const std::string& path, const Plan& plan) {
  const std::string text = to_json(plan);
  if (text.size() <= kMostPlanBytes.value) return write_file(path, text);
  return fail(Errc::bad_input,
              fmt::format("cannot write {}: its {} moves take more than {}, the most that is read; plan "
                          "for a smaller program",
                          path, plan.moves(), to_text(kMostPlanBytes)));
}

Result<Plan> load_plan(const std::string& path) {
  TRY(const std::string text, read_file(path, kMostPlanBytes));
  return parse_plan(text, path);
}

// By hand, since one command a line is what people edit and compare.
std::string to_json(const Plan& plan) {
  CHECK(!plan.predicted_seconds || std::isfinite(*plan.predicted_seconds));  // JSON has no other numbers.
  const auto text = [](const std::string& value) {
    return Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string out =
      fmt::format("{{\n  \"format\": \"{}\",\n  \"version\": {},\n  \"spillway\": \"{}\",\n  \"policy\": {},\n",
                  kFormat, kVersionOfFormat, kVersion, text(plan.policy));
  const TraceShape& shape = plan.trace_shape;
  out += fmt::format("  \"trace\": {{\"name\": {}, \"hash\": {},\n", text(plan.trace_name), text(plan.trace_hash));
  out += fmt::format("    \"shape\": {{\"kernels\": {}, \"tensors\": {}, \"names\": {}, \"uses\": {}}}}},\n",
                     shape.kernels, shape.tensors, text(shape.names), text(shape.uses));
  out += fmt::format("  \"machine\": {{\"name\": {}, \"hash\": {}, \"overrides\": {}}},\n", text(plan.machine_name),
                     text(plan.machine_hash), Json(plan.machine_overrides).dump());
  out += fmt::format("  \"overcommitted_bytes\": {},\n", plan.overcommitted.value);
  if (plan.predicted_seconds) out += fmt::format("  \"predicted_seconds\": {},\n", *plan.predicted_seconds);
  out += "  \"evictions\": [";
  for (const Eviction& eviction : plan.evictions)
    out += fmt::format("{}\n    {{\"tensor\": {}, \"after_kernel\": {}, \"to\": \"{}\"{}{}}}",
                       &eviction == plan.evictions.data() ? "" : ",", eviction.tensor.value, eviction.after.value,
                       to_text(eviction.to), eviction.during ? ", \"during\": true" : "",
                       more_of(eviction.delay, eviction.awaited_by));
  out += "\n  ],\n  \"prefetches\": [";
  for (const Prefetch& prefetch : plan.prefetches)
    out +=
        fmt::format("{}\n    {{\"tensor\": {}, \"at_kernel\": {}{}{}}}", &prefetch == plan.prefetches.data() ? "" : ",",
                    prefetch.tensor.value, prefetch.at.value, prefetch.keeps_copy ? ", \"keeps_copy\": true" : "",
                    more_of(prefetch.delay, prefetch.awaited_by));
  if (plan.recomputations.empty()) return out + "\n  ]\n}\n";
  out += "\n  ],\n  \"recomputations\": [";
  for (const Recomputation& one : plan.recomputations) {
    const auto ids = one.kernels | std::views::transform([](KernelId kernel) { return kernel.value; });
    out += fmt::format("{}\n    {{\"tensor\": {}, \"drop_after\": {}, \"before\": {}, \"kernels\": [{}]}}",
                       &one == plan.recomputations.data() ? "" : ",", one.tensor.value, one.drop_after.value,
                       one.before.value, fmt::join(ids, ", "));
  }
  return out + "\n  ]\n}\n";
}

}  // namespace spillway
