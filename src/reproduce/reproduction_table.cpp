#include "reproduce/reproduction_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "report/table.h"
#include "reproduce/claim_text.h"
#include "reproduce/figure_cells.h"

namespace spillway {
namespace {

std::string figure_text(const FigureResult& figure) {
  const FigureCells cells = cells_of(figure);
  std::vector<Table::Column> header{{figure.spec.unit, Align::left}, {"", Align::left}};
  for (const std::string& column : cells.columns) header.push_back({column});
  Table table(header);
  for (const std::string& row : cells.rows) {
    std::vector<std::string> ours{row, "here"}, published{"", "published"};
    for (const std::string& column : cells.columns) {
      ours.push_back(cells.at(row, column).ours);
      published.push_back(cells.at(row, column).published);
    }
    table.add_row(std::move(ours));
    if (cells.is_any_published) table.add_row(std::move(published));
  }
  std::string text = fmt::format("{}: {}\n", heading_of(figure.spec.id), figure.spec.title);
  if (!figure.series.empty()) text += table.text();
  for (const std::string& note : notes_of(figure)) text += wrapped(note, 0) + "\n";
  return text;
}

const FigureResult* figure_of_claim(const JudgedClaim& claim, const Reproduction& reproduction) {
  for (const FigureResult& figure : reproduction.figures)
    if (figure.spec.id == claim.spec.figure) return &figure;
  return nullptr;
}

std::string claim_text(const Reproduction& reproduction, std::size_t at) {
  const JudgedClaim& claim = reproduction.claims[at];
  std::string text = fmt::format("{}: {} ({})\n", to_text(claim.verdict), claim.spec.id, heading_of(claim.spec.figure));
  const auto add = [&](std::string_view what, const std::string& value) {
    constexpr std::size_t kIndent = 13;
    text += wrapped(fmt::format("  {:11}{}", what, value), kIndent) + "\n";
  };
  text += wrapped("  " + claim.spec.claim, 2) + "\n";
  add("published", published_text(claim));
  if (claim.verdict == Verdict::not_judged) {
    add("needs", claim.spec.needs.empty() ? "other traces" : claim.spec.needs);
    return text;
  }
  const FigureResult* figure = figure_of_claim(claim, reproduction);
  add("here", ours_text(claim));
  if (const std::string estimates = figure == nullptr ? "" : estimates_text(*figure); !estimates.empty())
    add("times", estimates);
  for (const JudgedStatement& statement : claim.statements)
    if (!statement.holds) add("not", fmt::format("{} {} ({})", statement.what, rule_text(statement), statement.models));
  if (claim.verdict != Verdict::holds) add("reason", reason_text(claim, figure == nullptr ? "" : figure->spec.unit));
  for (const std::string& flip : flips_of(reproduction, at)) add("flips", flip);
  return text;
}

std::string assumptions_text(const Reproduction& reproduction) {
  std::string text;
  for (const Variation& one : reproduction.variations)
    text += fmt::format("{} if {}", text.empty() ? "" : ",", one.assumption);
  return text + ".\n";
}

}  // namespace

std::string to_table(const Reproduction& reproduction) {
  std::string text = fmt::format("{}\n\n", reproduction.paper.title);
  if (!reproduction.at_hand.absent.empty())
    text += fmt::format("No trace of {} in {}.\n\n", fmt::join(reproduction.at_hand.absent, ", "),
                        printable(fmt::format("{}", fmt::join(reproduction.at_hand.folders, ", "))));
  for (const std::string& note : reproduction.at_hand.notes) text += printable(note) + "\n\n";
  for (const FigureResult& figure : reproduction.figures) text += figure_text(figure) + "\n";
  Table verdicts({{"claim", Align::left}, {"figure"}, {"verdict", Align::left}});
  for (const JudgedClaim& claim : reproduction.claims)
    verdicts.add_row({claim.spec.id, claim.spec.figure, std::string(to_text(claim.verdict))});
  text += verdicts.text() + "\n";
  for (std::size_t at = 0; at < reproduction.claims.size(); ++at) text += claim_text(reproduction, at) + "\n";
  if (!reproduction.variations.empty()) text += "Judged again" + assumptions_text(reproduction);
  text += fmt::format("{} cases simulated, {} from the cache.\n", reproduction.count.simulated,
                      reproduction.count.from_cache);
  return text;
}

}  // namespace spillway
