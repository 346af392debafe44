#include "report/json.h"

#include <nlohmann/json.hpp>

#include "base/version.h"

namespace spillway {

nlohmann::ordered_json new_report() { return {{"spillway", kVersion}}; }

nlohmann::ordered_json new_report(std::string_view trace_name, std::string_view trace_hash) {
  nlohmann::ordered_json report = new_report();
  report["trace"] = {{"name", trace_name}, {"hash", trace_hash}};
  return report;
}

std::string to_text(const nlohmann::ordered_json& report) {
  return report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace spillway
