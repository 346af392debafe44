#pragma once

#include <span>
#include <string>

#include "reproduce/reproduction.h"

namespace spillway {

// What a user can paste into a shell to simulate the same: the traces are imported into the working folder, and
// `spillway compare` simulates them. Of experiments on many machines, the reproduction itself. One line each.
std::string command_for(std::span<const Experiment> experiments, const TracesAtHand& at_hand, const Paper& paper,
                        const std::string& figure);

// What prints a figure's values, and then command_for's lines, if they are others.
std::string commands_for(std::span<const Experiment> experiments, const TracesAtHand& at_hand, const Paper& paper,
                         const std::string& figure);

// "a100 with host.memory=0", of the machines of the experiments, each once.
std::string machines_text(std::span<const Experiment> experiments);

}  // namespace spillway
