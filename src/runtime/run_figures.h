#pragma once

#include <cstdint>

namespace spillway {

// Why a plan is not followed any more, though no other has taken its place.
enum class PlanEnd : std::uint64_t {
  none,             // It is.
  slower,           // Iterations waited longer than without it.
  not_needed,       // Times or rates have changed, and now it is as good to go on without.
  other_iteration,  // The script does something else, for which there is no plan.
};

}  // namespace spillway
