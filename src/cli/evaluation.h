#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "evaluation/evaluate.h"

namespace spillway {

// "2 GiB more device memory", of a shortfall that is not zero.
std::string missing_text(const PerTier<Bytes>& shortfall);

// "g10 for bert on a100"; says also what is missing and ends the line, if it is infeasible.
std::string title_of(const Evaluation& evaluation, const Case& input);

// "Kernels take up to 20 % more or less", of a case with noise; else nothing.
std::string noise_text(const Case& input);

// `machine` and `trace` as every report has them, and `noise` if there is any.
nlohmann::ordered_json new_report(const Case& input);
// The fields of a simulation's result, from `policy` to `wall_seconds`, appended; times are null if it is infeasible.
void append_result(nlohmann::ordered_json& object, const Evaluation& evaluation);

}  // namespace spillway
