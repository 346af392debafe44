#pragma once

#include <string>

namespace spillway {

// The script's name, for the trace: the file name of its first argument that is a file, or else of the program.
std::string name_of_command();

}  // namespace spillway
