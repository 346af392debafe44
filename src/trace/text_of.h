#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "trace/trace.h"

namespace spillway {

inline constexpr std::array kTensorKinds{TensorKind::weight,     TensorKind::gradient, TensorKind::optimizer_state,
                                         TensorKind::activation, TensorKind::input,    TensorKind::workspace,
                                         TensorKind::other};
inline constexpr std::array kPhases{Phase::forward, Phase::backward, Phase::optimizer, Phase::other};

// The words that trace files and tables use: "optimizer_state", "forward".
std::string_view to_text(TensorKind kind);
std::string_view to_text(Phase phase);
std::optional<TensorKind> tensor_kind(std::string_view text);
std::optional<Phase> phase(std::string_view text);

// "bert", or "bert (times estimated: roofline, a100)": for what is drawn of its times, which must not be taken for
// measured ones.
std::string titled_name(const Trace& trace);

// " ('conv1')" for errors, or nothing for no name. Cut: what is wrong stands behind it and must be seen.
std::string in_brackets(const std::string& name);

}  // namespace spillway
