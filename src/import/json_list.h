#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace spillway {

// A JSON object whose member `list` is a long list of objects. Each of these is given to `each` and forgotten; what
// else the object has is returned, but for other lists. `where` begins the errors ("cannot import FILE"),
// `what_to_do` ends them.
Result<nlohmann::json> read_json_list(std::string_view json, std::string_view list, const std::string& where,
                                      std::string_view what_to_do,
                                      const std::function<Result<>(const nlohmann::json&)>& each);

}  // namespace spillway
