#include "memory/tier.h"

namespace spillway {

std::string_view to_text(Tier tier) {
  switch (tier) {
    case Tier::device:
      return "device";
    case Tier::host:
      return "host";
    case Tier::ssd:
      return "ssd";
  }
  return "?";
}

}  // namespace spillway
