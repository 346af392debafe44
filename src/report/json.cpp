#include "report/json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/version.h"

namespace spillway {

nlohmann::ordered_json new_report() { return {{"spillway", kVersion}}; }

nlohmann::ordered_json new_report(const LoadedTrace& loaded) {
  nlohmann::ordered_json report = new_report();
  report["trace"] = {{"name", loaded.trace.name}, {"hash", loaded.hash}};
  if (!loaded.trace.estimated.empty()) report["estimated_times"] = true;
  return report;
}

nlohmann::ordered_json json_of(const PerTier<Bytes>& bytes) {
  return {{"device", bytes.device.value}, {"host", bytes.host.value}, {"ssd", bytes.ssd.value}};
}

nlohmann::ordered_json json_of(const PerLink<Bytes>& bytes) {
  nlohmann::ordered_json object;
  for (const auto& [upper, lower] :
       {std::pair(Tier::device, Tier::host), {Tier::device, Tier::ssd}, {Tier::host, Tier::ssd}}) {
    object[fmt::format("{}_to_{}", to_text(upper), to_text(lower))] = bytes(upper, lower).value;
    object[fmt::format("{}_to_{}", to_text(lower), to_text(upper))] = bytes(lower, upper).value;
  }
  return object;
}

std::string to_text(const nlohmann::ordered_json& report) {
  return report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace spillway
