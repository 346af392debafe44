#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "reproduce/judge.h"

namespace spillway {

// The papers that can be reproduced: "g10, deepum".
std::string paper_names();
Result<Paper> paper_by_name(std::string_view name);

// Leaves that figure ("11", or "T3": table 3), its claims and its models alone; empty: all. Fails if there is none.
Result<> select_figure(Paper& paper, const std::string& figure);

// Traces of a paper's models, read from folders: the artifact's (MODEL/kernels.config.zst), or MODEL.trace[.zst], also
// in a folder "scaled". Measured ones are taken before estimates, and estimates that are stretched to published times
// before others.
struct TracesAtHand {
  std::vector<std::string> folders;
  Traces traces;
  std::map<std::string, std::string> paths;  // by model
  std::vector<std::string> absent;           // models
  std::vector<std::string> notes = {};       // sentences: what a reader should know of them
};
Result<TracesAtHand> read_traces(const Paper& paper, const std::vector<std::string>& folders);

// How the verdicts are under another assumption.
struct Variation {
  std::string assumption;
  std::vector<Verdict> verdicts;  // of the claims, in their order
};

struct Reproduction {
  Paper paper;
  TracesAtHand at_hand;
  std::vector<FigureResult> figures;
  std::vector<JudgedClaim> claims;
  std::vector<Variation> variations = {};  // of assumptions that change an experiment
  RunCount count;
};

// Tells how many of all simulations are done.
using ReproductionProgress = std::function<void(std::size_t done, std::size_t all)>;

struct ReproductionRequest {
  bool explains_why = true;  // runs the experiments behind reasons, too, which take longer than all else
  bool varies = false;       // judges the claims again under each other assumption
};

// The assumptions under which a claim's verdict is another one: "holds in part if a page fault costs twice as much".
std::vector<std::string> flips_of(const Reproduction& reproduction, std::size_t claim);

// Simulates what the figures need and what explains differences, and judges the claims.
Result<Reproduction> reproduce(Paper paper, const ReproductionRequest& request, TracesAtHand at_hand,
                               const RunnerOptions& options, const ReproductionProgress& progress);

}  // namespace spillway
