#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "plan/plan.h"

namespace spillway {

// Plan files are JSON that can be edited by hand; docs/formats/plan.md says what each field means. Reading checks the
// form; whether the commands make sense for a trace is validate_plan()'s business.
Result<Plan> parse_plan(std::string_view json, const std::string& where);
// Refuses a plan that load_plan would refuse for its size.
Result<> save_plan(const std::string& path, const Plan& plan);
Result<Plan> load_plan(const std::string& path);
std::string to_json(const Plan& plan);

}  // namespace spillway
