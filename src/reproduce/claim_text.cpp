#include "reproduce/claim_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "reproduce/numbers.h"

namespace spillway {
namespace {

std::string value_text(std::optional<double> value, const std::string& unit) {
  return value ? number_text(*value, unit) : "infeasible";
}

// "what: value model, value model; what: ...", each value once.
class Listing {
 public:
  void add(const std::string& what, const std::string& value) {
    auto found = std::ranges::find(lines_, what, &Line::first);
    if (found == lines_.end()) found = lines_.insert(lines_.end(), {what, {}});
    if (std::ranges::find(found->second, value) == found->second.end()) found->second.push_back(value);
  }
  std::string text() const {
    std::string text;
    for (const auto& [what, values] : lines_) {
      text += text.empty() ? what + ": " : "; " + what + ": ";
      for (std::size_t at = 0; at < values.size(); ++at) text += (at > 0 ? ", " : "") + values[at];
    }
    return text;
  }

 private:
  using Line = std::pair<std::string, std::vector<std::string>>;
  std::vector<Line> lines_;
};

// What the experiment gives, model by model.
std::string values_text(const JudgedReason& reason, const std::string& unit) {
  std::string text;
  for (const JudgedReason::Value& value : reason.values)
    text +=
        fmt::format(" {}{}{}: {} {} so, {} before, {} published.", value.model, reason.spec.at.empty() ? "" : ", ",
                    reason.spec.at, reason.spec.policy, value_text(value.after, unit), value_text(value.before, unit),
                    value.published ? number_text(*value.published, unit) : "nothing");
  if (!reason.explained) return text;
  const double percent = 100 * *reason.explained;
  text += percent > 0 ? fmt::format(" That is {:.0f} % of the difference.", percent)
                      : std::string(" That explains nothing of the difference.");
  return text;
}

}  // namespace

std::string ours_text(const JudgedClaim& claim) {
  Listing listing;
  for (const JudgedStatement& one : claim.statements)
    listing.add(one.what, fmt::format("{} ({})", value_text(one.ours, one.unit), one.models));
  return listing.text();
}

std::string published_text(const JudgedClaim& claim) {
  Listing listing;
  for (const JudgedStatement& one : claim.statements)
    if (one.is_bound_published && one.relation != Relation::fails)
      listing.add("of those at hand, " + one.what,
                  fmt::format("{} ({})", number_text(one.bound, one.unit), one.models));
  const std::string of_those = listing.text();
  return of_those.empty() ? claim.spec.published : claim.spec.published + "; " + of_those;
}

std::vector<std::string> reason_texts(const JudgedClaim& claim, const std::string& unit) {
  std::vector<std::string> texts;
  std::string last;
  for (const JudgedReason& reason : claim.reasons) {
    const std::string values = values_text(reason, unit);
    if (reason.spec.text == last)
      texts.back() += values;
    else
      texts.push_back(reason.spec.text + "." + values);
    last = reason.spec.text;
  }
  return texts;
}

std::string reason_text(const JudgedClaim& claim, const std::string& unit) {
  if (claim.verdict == Verdict::not_judged) return "";
  if (claim.verdict == Verdict::holds) return "";
  std::string text = claim.spec.known;
  for (const std::string& reason : reason_texts(claim, unit)) text += (text.empty() ? "" : " ") + reason;
  if (!text.empty()) return text;
  return claim.spec.reasons.empty() ? "Not found." : "Not looked for.";
}

}  // namespace spillway
