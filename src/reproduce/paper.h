#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reproduce/experiment.h"
#include "reproduce/measures.h"

namespace spillway {

// A paper's evaluation as data: its models, its figures, and its claims with the rules that judge them.

struct PaperModel {
  std::string id;             // "BERT-256", as in figures
  std::string folder;         // of its trace, as the public artifact names it
  std::string unscaled = {};  // if set: the model whose trace it is without times stretched to what was published
};

// One value of a figure: what is simulated, and what was published.
struct PointSpec {
  double x = 0;            // where the figure has such an axis
  std::string label = {};  // of x, or empty
  Experiment experiment = {};
  std::optional<double> published = {};  // nothing: not published, or it failed
};

struct SeriesSpec {
  std::string model;
  std::string policy;     // as the paper calls it; empty where nothing is simulated
  std::string part = {};  // of a stacked bar, or what is measured, where a figure has several
  std::variant<Measure, TraceMeasure, TraceCurve> measure;
  std::vector<PointSpec> points = {};         // a curve has none
  std::optional<double> published_seen = {};  // what the paper says of a TraceMeasure
};

enum class ChartKind : std::uint8_t { bars, stacked_bars, lines, curves, scatter };

struct FigureSpec {
  std::string id;  // "11"
  std::string title, unit;
  ChartKind chart = ChartKind::bars;
  std::string x_title = {};
  bool x_is_logarithmic = false, y_is_logarithmic = false;
  bool one_panel = false;         // else one for each model
  std::string relative_to = {};   // a point's label: values are percent of that one's
  std::string speedup_over = {};  // a policy of the figure: values are its time, divided by the time of each
  std::string percent_of = {};    // a policy of the figure: values are percent of its value
  std::string note = {};          // what a reader must know to compare, a sentence or two
  bool is_of_times = true;        // false: its values are the same however long kernels take
  std::vector<SeriesSpec> series;
};

// Note [Verdicts]
// A claim is made of statements. Each is true or false by its relation:
//   near      ours is within `tolerance` (a share) of the bound
//   at_least  ours is not below the bound
//   at_most   ours is not above the bound
//   within    ours is neither below the bound nor above the upper one
//   fails     what the policy would need is more than there is
// All true: the claim holds. Some: it holds in part. None: it does not hold. A statement of each model counts once a
// model. Without a bound of its own a statement's bound is the same formula over what was published.
enum class Relation : std::uint8_t { near, at_least, at_most, within, fails };
// Means are geometric, of the points that are worst for the relation. The most is over all points.
enum class Over : std::uint8_t { each_model, mean_of_models, most_of_models };

struct StatementSpec {
  std::string what;            // "G10 / DeepUM+"
  std::string policy;          // of the figure's series
  std::string over = {};       // divides by this policy's value; empty: the value itself
  std::string part = {};       // of the figure's parts
  std::string over_part = {};  // that of what it is divided by, if it is another one
  std::string at = {};         // a point's label; empty: the point that is worst for the relation
  Over models = Over::each_model;
  Relation relation = Relation::near;
  std::optional<double> bound = {};
  double upper = 0;  // the other bound of `within`
  double tolerance = 0.1;
  std::string unit = {};               // if it is not the figure's
  std::vector<std::string> only = {};  // models; empty: all that are at hand
};

// Why ours differs: an experiment whose values should be nearer to what was published.
struct ReasonSpec {
  std::string text;    // a sentence
  std::string policy;  // whose difference it explains, of the figure's series
  std::string part = {};
  std::string at = {};                      // the point's label
  std::string instead = {};                 // what is simulated in its place, else the same
  std::string base_instead = {};            // in place of the policy that the figure compares with
  std::vector<std::string> overrides = {};  // of the machine
  std::uint32_t estimates_percent = 100;    // what kernels take of estimated times
  std::uint32_t bytes_percent = 100;        // how large tensors of a dry run are
  std::vector<std::string> only = {};       // models; empty: all that are at hand
};

struct ClaimSpec {
  std::string id;      // "g10.near-ideal"
  std::string figure;  // "11"
  std::string claim;   // a sentence
  std::string published;
  std::vector<StatementSpec> statements = {};
  std::vector<ReasonSpec> reasons = {};
  std::string known = {};  // a reason that the figure shows by itself, in sentences
  std::string needs = {};  // why it is not judged, if it is not
};

struct Paper {
  std::string name, title;
  std::string source;            // of the published values
  std::string machine = "a100";  // of its evaluation
  std::vector<PaperModel> models;
  std::vector<FigureSpec> figures;
  std::vector<ClaimSpec> claims;
};

Paper g10_paper();
Paper deepum_paper();
Paper tensile_paper();

struct PaperEntry {
  std::string_view name;
  Paper (*paper)();
};
// One file and one line a paper.
inline constexpr PaperEntry kPapers[] = {{"g10", g10_paper}, {"deepum", deepum_paper}, {"tensile", tensile_paper}};

}  // namespace spillway
