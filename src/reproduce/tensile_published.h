#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace spillway {

// What TENSILE's paper has in numbers (its tables I to IV). Networks are named as their traces are: "VGG-16".
std::vector<std::string_view> tensile_network_names();  // in the order of the tables

enum class TensileMeasure { memory_saving, extra_overhead, cost_benefit };
// Table I: "TENSILE", "cold start", "updated".
std::optional<double> tensile_table_1(std::string_view network, std::string_view phase, TensileMeasure measure);
// Table II, the first iteration's extra overhead: "TENSILE", "less prediction", "Capuchin".
std::optional<double> tensile_table_2(std::string_view network, std::string_view system);
// Table III: "vDNN", "Capuchin", "TENSILE".
std::optional<double> tensile_table_3(std::string_view network, std::string_view system, TensileMeasure measure);
// Table IV, of all five networks: the same systems.
std::optional<double> tensile_table_4(std::string_view system, TensileMeasure measure);

}  // namespace spillway
