#pragma once

#include <optional>
#include <string_view>

namespace spillway {

// What the authors of G10 have published in numbers: the expected results of their public artifact
// (https://github.com/platformxlab/G10, Apache-2.0). Nothing where a case failed or was not run. Policies and models
// are named as in the paper's figures, models with their batch size.

std::optional<double> g10_figure_11(std::string_view model, std::string_view policy);  // percent of ideal
// Percent of the iteration: "computing", "overlapped", "stalled".
std::optional<double> g10_figure_12(std::string_view model, std::string_view policy, std::string_view part);
// GB of an iteration, both ways: "SSD", "host".
std::optional<double> g10_figure_14(std::string_view model, std::string_view policy, std::string_view part);
// GB of an iteration that are written to the SSD, of the same rows.
std::optional<double> g10_ssd_writes(std::string_view model, std::string_view policy);
std::optional<double> g10_figure_15(std::string_view model, std::string_view policy);  // percent of ideal
std::optional<double> g10_figure_16(std::string_view model, double host_gb);           // percent of ideal
// Percent of ideal.
std::optional<double> g10_figure_18(std::string_view model, std::string_view policy, double ssd_gb_per_second);
std::optional<double> g10_figure_19(std::string_view model, double noise_percent);  // percent of ideal

}  // namespace spillway
