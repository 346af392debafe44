#pragma once

#include <string_view>

namespace spillway {

// The files of this folder, and D3, as CMake has compiled them in.
struct PageParts {
  std::string_view frame, compare_frame,
      report_frame;                // page.html, compare.html, report.html, each between head.html and tail.html
  std::string_view style;          // page.css
  std::string_view d3;             // d3.min.js
  std::string_view shared_script;  // units.js, marks.js
  std::string_view script, compare_script, report_script;
};
PageParts page_parts();

}  // namespace spillway
