#include "reproduce/outcome_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <nlohmann/json.hpp>

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kCacheVersion = 3;  // of this file; another version's outcomes are simulated again

}  // namespace

std::string to_cache_text(const Outcome& outcome, std::string_view key) {
  Json moved = Json::array();
  for (const Tier from : kTiers)
    for (const Tier to : kTiers)
      if (from != to) moved.push_back(outcome.moved(from, to).value);
  return Json{{"version", kCacheVersion},
              {"key", key},
              {"feasible", outcome.feasible},
              {"iteration_seconds", outcome.iteration_seconds},
              {"ideal_seconds", outcome.ideal_seconds},
              {"first_iteration_seconds", outcome.first_iteration_seconds},
              {"stall_seconds", outcome.stall_seconds},
              {"hidden_seconds", outcome.hidden_seconds},
              {"faults", outcome.faults},
              {"kernels", outcome.kernels},
              {"slowed_kernels", outcome.slowed_kernels},
              {"slowdown", outcome.slowdown},
              {"peak_bytes", outcome.peak.value},
              {"unlimited_peak_bytes", outcome.unlimited_peak.value},
              {"moved_bytes", moved},
              {"flash_years", outcome.flash_years ? Json(*outcome.flash_years) : Json(nullptr)}}
             .dump() +
         "\n";
}

std::optional<Outcome> from_cache_text(std::string_view text, std::string_view key) {
  try {
    const Json json = Json::parse(text);
    if (json.at("version") != kCacheVersion || json.at("key") != key) return std::nullopt;
    Outcome outcome{.feasible = json.at("feasible"),
                    .iteration_seconds = json.at("iteration_seconds"),
                    .ideal_seconds = json.at("ideal_seconds"),
                    .first_iteration_seconds = json.at("first_iteration_seconds"),
                    .stall_seconds = json.at("stall_seconds"),
                    .hidden_seconds = json.at("hidden_seconds"),
                    .faults = json.at("faults"),
                    .kernels = json.at("kernels"),
                    .slowed_kernels = json.at("slowed_kernels"),
                    .slowdown = json.at("slowdown"),
                    .peak = Bytes{json.at("peak_bytes").get<std::uint64_t>()},
                    .unlimited_peak = Bytes{json.at("unlimited_peak_bytes").get<std::uint64_t>()},
                    .moved = {}};
    std::size_t at = 0;
    for (const Tier from : kTiers)
      for (const Tier to : kTiers)
        if (from != to) outcome.moved(from, to) = Bytes{json.at("moved_bytes").at(at++).get<std::uint64_t>()};
    if (!json.at("flash_years").is_null()) outcome.flash_years = json.at("flash_years").get<double>();
    return outcome;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string cache_file_name(std::string_view key) {
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  return fmt::format("{:016x}{:016x}.json", hash.high64, hash.low64);
}

}  // namespace spillway
