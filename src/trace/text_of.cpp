#include "trace/text_of.h"

#include "base/check.h"

namespace spillway {

std::string_view to_text(TensorKind kind) {
  switch (kind) {
    case TensorKind::weight:
      return "weight";
    case TensorKind::gradient:
      return "gradient";
    case TensorKind::optimizer_state:
      return "optimizer_state";
    case TensorKind::activation:
      return "activation";
    case TensorKind::input:
      return "input";
    case TensorKind::workspace:
      return "workspace";
    case TensorKind::other:
      return "other";
  }
  CHECK(false);
}

std::string_view to_text(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::optimizer:
      return "optimizer";
    case Phase::other:
      return "other";
  }
  CHECK(false);
}

std::optional<TensorKind> tensor_kind(std::string_view text) {
  for (const TensorKind kind : kTensorKinds)
    if (to_text(kind) == text) return kind;
  return std::nullopt;
}

std::optional<Phase> phase(std::string_view text) {
  for (const Phase candidate : kPhases)
    if (to_text(candidate) == text) return candidate;
  return std::nullopt;
}

std::string in_brackets(const std::string& name) {
  constexpr std::size_t kShown = 100;
  if (name.empty()) return "";
  return " ('" + name.substr(0, kShown) + (name.size() > kShown ? "…" : "") + "')";
}

std::string titled_name(const Trace& trace) {
  return trace.estimated.empty() ? trace.name : trace.name + " (times estimated: " + trace.estimated + ")";
}

}  // namespace spillway
