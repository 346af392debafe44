#pragma once

#include <string>
#include <vector>

#include "reproduce/judge.h"

namespace spillway {

// Values for people, the same in the terminal, in JSON and on the page.

// "here": each statement's value once: "G10 / DeepUM+: 1.09× (mean of 3 models)".
std::string ours_text(const JudgedClaim& claim);
// The claim's own words, and what that is of the models at hand, where it was published by model.
std::string published_text(const JudgedClaim& claim);
// Each reason once: its sentence, its values of all policies, and how much of the difference they explain.
std::vector<std::string> reason_texts(const JudgedClaim& claim, const std::string& unit);
// All reasons that explain something; "not found" where a verdict needs one and none does.
std::string reason_text(const JudgedClaim& claim, const std::string& unit);

}  // namespace spillway
