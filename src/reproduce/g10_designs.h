#pragma once

#include <array>
#include <string>

#include "reproduce/paper.h"

namespace spillway {

struct G10Design {
  const char* name;    // in the paper
  const char* policy;  // of ours
};
// The order of figure 11. DeepUM+ is told what the next kernels use, as the artifact's is.
inline constexpr std::array kG10Designs{G10Design{"Base UVM", "uvm"},      G10Design{"FlashNeuron", "flashneuron"},
                                        G10Design{"DeepUM+", "deepum"},    G10Design{"G10-GDS", "g10-gds"},
                                        G10Design{"G10-Host", "g10-host"}, G10Design{"G10", "g10"},
                                        G10Design{"Ideal", "ideal"}};
// Those of the other figures.
inline constexpr std::array kFourG10Designs{kG10Designs[0], kG10Designs[1], kG10Designs[2], kG10Designs[5]};

inline Experiment g10_experiment(const std::string& model, const G10Design& design) {
  return {.model = model, .policy = design.policy};
}

}  // namespace spillway
