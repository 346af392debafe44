#include "plan/parameters.h"

#include <fmt/format.h>

namespace spillway {

std::string Parameters::text() const {
  std::string text;
  for (std::size_t at = 0; at < specs_.size(); ++at)
    if (set_[at])
      text += std::visit(
          [&](const auto& value) { return fmt::format("{}{}={}", text.empty() ? ':' : ',', specs_[at].name, value); },
          *set_[at]);
  return text;
}

}  // namespace spillway
