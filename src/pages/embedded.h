#pragma once

#include <string_view>

namespace spillway {

// The files of this folder, and D3, as CMake has compiled them in.
struct PageParts {
  std::string_view frame;   // page.html
  std::string_view style;   // page.css
  std::string_view d3;      // d3.min.js
  std::string_view script;  // the .js files
};
PageParts page_parts();

}  // namespace spillway
