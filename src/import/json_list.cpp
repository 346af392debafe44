#include "import/json_list.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace spillway {
namespace {

using Json = nlohmann::json;

constexpr int kDeepestList = 24;  // lists of lists of tensors, within a node's inputs
constexpr std::string_view kGzip = "\x1f\x8b";

}  // namespace

Result<nlohmann::json> read_json_list(std::string_view json, std::string_view list, const std::string& where,
                                      std::string_view what_to_do,
                                      const std::function<Result<>(const nlohmann::json&)>& each) {
  if (json.starts_with(kGzip))
    return fail(Errc::bad_input, fmt::format("{}: it is compressed with gzip; unpack it with gunzip", where));
  if (nests_deeper(json, kDeepestList))
    return fail(Errc::bad_input,
                fmt::format("{}: it nests deeper than {} levels; {}", where, kDeepestList, what_to_do));
  Result<> outcome;
  bool found = false, here = false;  // the list; and whether we are in it
  try {
    Json rest = Json::parse(json, [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (event == Json::parse_event_t::key && depth == 1) {
        here = parsed == list;
        found = found || here;
      }
      if (event == Json::parse_event_t::object_end && depth == 2) {
        if (here && outcome) outcome = each(parsed);
        return false;
      }
      return depth < 2 || here || event != Json::parse_event_t::value;
    });
    if (!outcome) return std::unexpected(std::move(outcome).error());
    if (!rest.is_object() || !found)
      return fail(Errc::bad_input, fmt::format("{}: it is no JSON object with '{}'; {}", where, list, what_to_do));
    return rest;
  } catch (const Json::exception& error) {
    return fail(Errc::bad_input,
                fmt::format("{}: not JSON: {}; is it cut off? {}", where, json_reason(error.what()), what_to_do));
  }
}

}  // namespace spillway
