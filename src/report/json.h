#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/units.h"
#include "memory/tier.h"
#include "trace/format.h"

namespace spillway {

// One JSON object for programs. Every object that a command prints begins with `spillway`, the version, then says what
// it was made from: `trace` {name, hash}, `estimated_times` (true) if the trace's are no measurements, and `machine`
// {name, hash, overrides} where there is one. Names are stable; sizes are in bytes (names end in _bytes), times in
// seconds (names end in _seconds), counts whole numbers. Include <nlohmann/json.hpp> in the .cpp that fills it in,
// never in a header: it is slow to compile.
nlohmann::ordered_json new_report();
nlohmann::ordered_json new_report(const LoadedTrace& trace);

// By the names of the tiers, and of the links: "device_to_ssd".
nlohmann::ordered_json json_of(const PerTier<Bytes>& bytes);
nlohmann::ordered_json json_of(const PerLink<Bytes>& bytes);

// Indented, with a newline at the end. What is not UTF-8 is replaced.
std::string to_text(const nlohmann::ordered_json& report);

}  // namespace spillway
