#include "reproduce/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/version.h"
#include "reproduce/chart.h"
#include "reproduce/claim_text.h"
#include "reproduce/commands.h"
#include "reproduce/figure_cells.h"
#include "reproduce/numbers.h"
#include "reproduce/page_figure.h"
#include "reproduce/page_style.h"

namespace spillway {
namespace {

// A mark and words beside the colour.
std::string badge(Verdict verdict) {
  struct Look {
    std::string_view mark, kind;
  };
  const Look look = verdict == Verdict::holds           ? Look{"✓", "holds"}
                    : verdict == Verdict::holds_in_part ? Look{"◐", "part"}
                    : verdict == Verdict::does_not_hold ? Look{"✗", "not"}
                                                        : Look{"–", "unjudged"};
  return fmt::format(R"(<span class="verdict {}"><span aria-hidden="true">{}</span> {}</span>)", look.kind, look.mark,
                     to_text(verdict));
}

std::string anchor_of(const std::string& figure) { return "figure-" + figure; }

std::string statements_of(const JudgedClaim& claim) {
  std::string text =
      "<details><summary>How it is judged</summary><div class=\"scroll\" tabindex=\"0\"><table><thead><tr>"
      "<th>statement</th><th class=\"left\">of</th><th>here</th><th class=\"left\">rule</th>"
      "<th class=\"left\"></th></tr></thead><tbody>\n";
  for (const JudgedStatement& one : claim.statements)
    text += fmt::format(
        "<tr><td>{}</td><td class=\"left\">{}</td><td>{}</td><td class=\"left\">{}</td>"
        "<td class=\"left\">{}</td></tr>\n",
        escaped(one.what), escaped(one.models), one.ours ? escaped(number_text(*one.ours, one.unit)) : "infeasible",
        escaped(rule_text(one)), one.holds ? "✓ true" : "✗ false");
  return text +
         "</tbody></table></div><p class=\"soft\">All true: it holds. Some: in part. None: it does not.</p>"
         "</details>\n";
}

// How each verdict is under each other assumption; those that differ are marked.
std::string sensitivity_of(const Reproduction& reproduction) {
  if (reproduction.variations.empty()) return "";
  std::string text =
      "<h2 id=\"sensitivity\">What the verdicts depend on</h2>\n<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>"
      "<th>claim</th><th class=\"left\">as assumed</th>";
  for (const Variation& one : reproduction.variations)
    text += fmt::format("<th class=\"left\">{}</th>", escaped(one.assumption));
  text += "</tr></thead><tbody>\n";
  for (std::size_t at = 0; at < reproduction.claims.size(); ++at) {
    const JudgedClaim& claim = reproduction.claims[at];
    if (claim.verdict == Verdict::not_judged) continue;
    text += fmt::format("<tr><td><a href=\"#{}\">{}</a></td><td class=\"left\">{}</td>", escaped(claim.spec.id),
                        escaped(claim.spec.claim), badge(claim.verdict));
    for (const Variation& one : reproduction.variations)
      text += fmt::format("<td class=\"left\">{}</td>",
                          one.verdicts[at] == claim.verdict ? "the same" : "⚠ " + badge(one.verdicts[at]));
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

// `figure`: the claim's, if it is drawn.
std::string card_of(std::size_t at, const Reproduction& reproduction, const FigureResult* figure) {
  const JudgedClaim& claim = reproduction.claims[at];
  const std::string unit = figure == nullptr ? "" : figure->spec.unit;
  std::string text = fmt::format(
      "<article class=\"claim\" id=\"{0}\"><p>{1} <span class=\"soft\">{0}</span></p><h3>{2}"
      "</h3>\n<dl><dt>published</dt><dd>{3}</dd>\n",
      escaped(claim.spec.id), badge(claim.verdict), escaped(claim.spec.claim), escaped(published_text(claim)));
  if (claim.verdict == Verdict::not_judged)
    return text + fmt::format("<dt>needs</dt><dd>{}</dd></dl></article>\n",
                              escaped(claim.spec.needs.empty() ? "other traces" : claim.spec.needs));
  text += fmt::format("<dt>here</dt><dd>{}</dd>\n", escaped(ours_text(claim)));
  if (const std::string estimates = figure == nullptr ? "" : estimates_text(*figure); !estimates.empty())
    text += fmt::format("<dt>times</dt><dd>{}</dd>\n", escaped(estimates));
  if (claim.verdict != Verdict::holds) {
    text += "<dt>reason</dt><dd>";
    if (!claim.spec.known.empty()) text += "<p>" + escaped(claim.spec.known) + "</p>";
    for (const std::string& reason : reason_texts(claim, unit)) text += "<p>" + escaped(reason) + "</p>";
    if (claim.spec.known.empty() && claim.reasons.empty()) text += escaped(reason_text(claim, unit));
    text += "</dd>\n";
  }
  const std::vector<std::string> flips = flips_of(reproduction, at);
  if (!flips.empty())
    text += fmt::format("<dt>flips</dt><dd>⚠ {}</dd>\n", escaped(fmt::format("{}", fmt::join(flips, "; "))));
  text += "</dl>\n" + statements_of(claim);
  std::string commands = commands_for(claim.experiments, reproduction.at_hand, reproduction.paper, claim.spec.figure);
  for (const JudgedReason& reason : claim.reasons)
    commands +=
        fmt::format("\n# {}\n{}", reason.spec.text,
                    command_for(reason.experiments, reproduction.at_hand, reproduction.paper, claim.spec.figure));
  return text + fmt::format("<details><summary>Commands</summary><pre tabindex=\"0\">{}</pre></details></article>\n",
                            escaped(commands));
}

std::string section_of(const FigureResult& figure, const Reproduction& reproduction,
                       const std::vector<std::string>& designs) {
  const std::string& id = figure.spec.id;
  std::string text =
      fmt::format("<section id=\"{}\"><h2>{}: {}</h2>\n", anchor_of(id), heading_of(id), escaped(figure.spec.title));
  text += panels_of(figure, designs);
  for (const std::string& note : notes_of(figure)) text += fmt::format("<p class=\"soft\">{}</p>\n", escaped(note));
  const std::vector<Experiment> experiments = experiments_of(figure.spec, reproduction.at_hand.traces);
  if (!experiments.empty())
    text += fmt::format("<p class=\"soft\">Machine: {}</p>\n", escaped(machines_text(experiments)));
  if (!figure.series.empty())
    text += fmt::format("<pre tabindex=\"0\">{}</pre>\n<details><summary>All values</summary>{}</details>\n",
                        escaped(commands_for(experiments, reproduction.at_hand, reproduction.paper, id)),
                        values_of(figure));
  text += "<div class=\"claims\">\n";
  for (std::size_t at = 0; at < reproduction.claims.size(); ++at)
    if (reproduction.claims[at].spec.figure == id) text += card_of(at, reproduction, &figure);
  return text + "</div></section>\n";
}

std::string overview_of(const Reproduction& reproduction) {
  std::string text =
      "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th>claim</th><th class=\"left\">verdict</th>"
      "<th class=\"left\">where</th></tr></thead><tbody>\n";
  for (const JudgedClaim& claim : reproduction.claims)
    text += fmt::format(
        "<tr><td><a href=\"#{}\">{}</a></td><td class=\"left\">{}</td><td class=\"left\">{}</td></tr>\n",
        escaped(claim.spec.id), escaped(claim.spec.claim), badge(claim.verdict), heading_of(claim.spec.figure));
  return text + "</tbody></table></div>\n";
}

std::string counts_of(const Reproduction& reproduction) {
  std::vector<std::string> counts;
  for (const Verdict verdict : {Verdict::holds, Verdict::holds_in_part, Verdict::does_not_hold, Verdict::not_judged})
    counts.push_back(fmt::format("<span class=\"verdict\">{} {}</span>",
                                 std::ranges::count(reproduction.claims, verdict, &JudgedClaim::verdict),
                                 badge(verdict)));
  return fmt::format("<p>{}</p>\n", fmt::join(counts, " &nbsp; "));
}

std::string inputs_of_page(const Reproduction& reproduction) {
  std::string text = "<h2>What this rests on</h2>\n<dl>\n";
  text += fmt::format("<dt>program</dt><dd>spillway {}</dd>\n<dt>published</dt><dd>{}</dd>\n", kVersion,
                      escaped(reproduction.paper.source));
  for (const auto& [model, loaded] : reproduction.at_hand.traces)
    text += fmt::format("<dt>{}</dt><dd>{}, hash {}{}</dd>\n", escaped(model),
                        escaped(reproduction.at_hand.paths.at(model)), loaded.hash,
                        loaded.trace.estimated.empty() ? "" : escaped("; times estimated: " + loaded.trace.estimated));
  if (!reproduction.at_hand.absent.empty())
    text += fmt::format("<dt>no trace</dt><dd>{}</dd>\n",
                        escaped(fmt::format("{}", fmt::join(reproduction.at_hand.absent, ", "))));
  return text + "</dl>\n";
}

}  // namespace

std::string to_page(const Reproduction& reproduction) {
  std::vector<std::string> designs;
  for (const FigureResult& figure : reproduction.figures)
    for (const SeriesResult& series : figure.series)
      if (!series.spec.policy.empty()) add_once(designs, series.spec.policy);
  const std::string title = escaped(reproduction.paper.title);
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"generator\" "
      "content=\"Spillway\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\n<title>{} — "
      "reproduced</title>\n<style>{}</style></head>\n<body><main>\n<h1>{}</h1>\n<p class=\"soft\">Its evaluation, "
      "simulated again, beside what was published.</p>\n",
      escaped(reproduction.paper.name), kPageStyle, title);
  for (const std::string& note : reproduction.at_hand.notes) text += fmt::format("<p>{}</p>\n", escaped(note));
  text += counts_of(reproduction) + "<nav aria-label=\"Figures\"><ul>";
  for (const FigureResult& figure : reproduction.figures)
    text += fmt::format("<li><a href=\"#{}\">{}</a></li>", anchor_of(figure.spec.id), heading_of(figure.spec.id));
  text += "</ul></nav>\n" + overview_of(reproduction);
  for (const FigureResult& figure : reproduction.figures) text += section_of(figure, reproduction, designs);
  std::string others;
  for (std::size_t at = 0; at < reproduction.claims.size(); ++at)
    if (std::ranges::none_of(reproduction.figures, [&](const FigureResult& one) {
          return one.spec.id == reproduction.claims[at].spec.figure;
        }))
      others += card_of(at, reproduction, nullptr);
  if (!others.empty()) text += "<h2>Not judged here</h2>\n<div class=\"claims\">\n" + others + "</div>\n";
  return text + sensitivity_of(reproduction) + inputs_of_page(reproduction) + "</main></body></html>\n";
}

}  // namespace spillway
