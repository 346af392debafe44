#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace spillway {

// Makes sure, before a long run, that a file can be written there at its end, and names it absolutely: the script, or
// whoever writes the file from within it, may be in another folder by then. `option` is who asked for it, for the
// error.
Result<std::string> check_output(std::string_view option, const std::string& file);

}  // namespace spillway
