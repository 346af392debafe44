#pragma once

#include <string>
#include <string_view>

namespace spillway {

// "84.8 %", "1.31×", "5.7 GB": three digits or more, the unit as the figure has it.
std::string number_text(double value, std::string_view unit);
std::string number_text(double value);  // without a unit

}  // namespace spillway
