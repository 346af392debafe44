#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "reproduce/deepum.h"
#include "reproduce/deepum_published.h"

namespace spillway {
namespace {

struct System {
  std::string name;    // in the paper
  std::string policy;  // of ours
};
using Systems = std::vector<System>;

// Nothing fragments here, so the changed LMS is LMS.
const char* const kLms = "lms";
// PyTorch's pool of memory is below all that uses unified memory: nobody tells the driver what is dead there.
const char* const kUnifiedMemory = "uvm:pool=1";
const char* const kDeepum = "deepum-faults:pool=1";

Experiment on_v100(const std::string& model, const std::string& policy) {
  return {.model = model, .policy = policy, .machine = "v100-32"};
}

// Of each family the smallest batch: where a figure asks for many simulations.
std::vector<PaperModel> smallest_batches() {
  std::vector<PaperModel> models;
  std::string family;
  for (const PaperModel& model : deepum_trained()) {
    const std::string name = model.id.substr(0, model.id.rfind('-'));
    if (name != family) models.push_back(model);
    family = name;
  }
  return models;
}

// What the paper's figures compare with each model.
void add_series(FigureSpec& figure, const Systems& systems, Measure measure,
                std::optional<double> (*published)(std::string_view model, std::string_view system),
                const std::vector<PaperModel>& models = deepum_trained()) {
  for (const PaperModel& model : models)
    for (const System& system : systems)
      figure.series.push_back({.model = model.id,
                               .policy = system.name,
                               .measure = measure,
                               .points = {{.experiment = on_v100(model.id, system.policy),
                                           .published = published ? published(model.id, system.name) : std::nullopt}}});
}

Systems compared_systems() {
  return {{"UM", kUnifiedMemory}, {"LMS", kLms}, {"LMS-mod", kLms}, {"DeepUM", kDeepum}, {"Ideal", "ideal"}};
}

FigureSpec speedups() {
  FigureSpec figure{.id = "9a",
                    .title = "Speedup over unified memory without prefetching",
                    .unit = "×",
                    .speedup_over = "UM",
                    .note = "Published are the quotients of figure 9(b). The paper draws its ideal, without a number.",
                    .series = {}};
  add_series(figure, compared_systems(), &iteration_seconds, &deepum_figure_9b);
  return figure;
}

FigureSpec times() {
  FigureSpec figure{.id = "9b",
                    .title = "Time of 100 iterations",
                    .unit = "s",
                    .note = "The paper's text names neither the lengths of its texts nor its optimizers.",
                    .series = {}};
  add_series(figure, compared_systems(), &hundred_iterations_seconds, &deepum_figure_9b);
  return figure;
}

FigureSpec steps() {
  FigureSpec figure{.id = "10",
                    .title = "What is left of unified memory's time with prefetches, pre-eviction and invalidation",
                    .unit = "% of UM",
                    .percent_of = "UM",
                    .note = "The paper has this as a drawing, and means in its text.",
                    .series = {}};
  add_series(figure,
             {{"UM", kUnifiedMemory},
              {"Prefetching", "deepum-faults:pool=1,pre-evict=0,invalidate=0"},
              {"+Preeviction", "deepum-faults:pool=1,invalidate=0"},
              {"+Invalidate", kDeepum}},
             &iteration_seconds, nullptr);
  return figure;
}

FigureSpec look_ahead() {
  FigureSpec figure{.id = "11a",
                    .title = "Looking farther ahead: N kernels",
                    .unit = "×",
                    .speedup_over = "N=8",
                    .note = "The paper has this as a drawing. Here: the smallest batch of each model.",
                    .series = {}};
  Systems systems;
  for (const int ahead : {8, 16, 32, 64, 128})
    systems.push_back(
        {fmt::format("N={}", ahead), ahead == 32 ? std::string(kDeepum) : fmt::format("{},ahead={}", kDeepum, ahead)});
  add_series(figure, systems, &iteration_seconds, nullptr, smallest_batches());
  return figure;
}

FigureSpec table_shapes() {
  FigureSpec figure{.id = "12",
                    .title = "Shapes of the block tables, of table 6",
                    .unit = "×",
                    .speedup_over = "Config0",
                    .note = "The paper has this as a drawing. Here: the smallest batch of each model.",
                    .series = {}};
  struct Shape {
    int ways, successors, rows;
  };
  constexpr std::array kShapes{Shape{2, 4, 128},  Shape{2, 8, 128},  Shape{4, 4, 128},  Shape{2, 4, 512},
                               Shape{2, 8, 512},  Shape{4, 4, 512},  Shape{2, 4, 1024}, Shape{2, 8, 1024},
                               Shape{4, 4, 1024}, Shape{2, 4, 2048}, Shape{2, 8, 2048}, Shape{4, 4, 2048},
                               Shape{2, 4, 4096}};
  constexpr std::size_t kDefault = 9;  // of the policy
  Systems systems;
  for (const Shape& shape : kShapes) {
    const std::size_t number = systems.size();
    systems.push_back({fmt::format("Config{}", number), number == kDefault
                                                            ? std::string(kDeepum)
                                                            : fmt::format("{},assoc={},succs={},rows={}", kDeepum,
                                                                          shape.ways, shape.successors, shape.rows)});
  }
  add_series(figure, systems, &iteration_seconds, nullptr, smallest_batches());
  return figure;
}

// The peak of a batch does not depend on the system, if this loses no memory.
FigureSpec peaks_of(std::string id, std::string note, const std::vector<PaperModel>& models) {
  FigureSpec figure{.id = std::move(id),
                    .title = "Peak of memory with the largest batch that DeepUM could run",
                    .unit = "GB",
                    .note = std::move(note),
                    .is_of_times = false,
                    .series = {}};
  for (const PaperModel& model : models)
    figure.series.push_back({.model = model.id, .policy = "", .part = "peak", .measure = &peak_gigabytes});
  return figure;
}

FigureSpec largest_batches() {
  return peaks_of("T3", "The machine has 512 GB of host memory and 34 GB of the device's.", deepum_largest());
}

FigureSpec largest_batches_on_16_gb() {
  return peaks_of(
      "T7",
      "DeepUM may use 128 GB of host memory, and 17 GB are the device's. Published largest batches of "
      "Capuchin: ResNet200 5.9K, BERT large 27, DCGAN 2.7K, MobileNet 3.2K; of Sentinel: 5.7K, 28, 2.5K, "
      "3.2K; of vDNN: 4.2K, none, 1.4K, 1.2K. Images are 32 pixels wide and high (DCGAN's 64), and texts of "
      "CoLA are filled up to 128 words.",
      deepum_largest_on_16_gb());
}

FigureSpec beside_tensorflow() {
  FigureSpec figure{
      .id = "13",
      .title = "Speedup over unified memory, on a V100 with 16 GB",
      .unit = "×",
      .speedup_over = "UM",
      .note =
          "The paper has this as a drawing, quotes the others' values, and names no batches. Here: "
          "DeepUM's largest ones of table 7, with 128 GB of host memory. AutoTM, SwapAdvisor and Sentinel are not "
          "simulated.",
      .series = {}};
  add_series(
      figure,
      {{"UM", kUnifiedMemory}, {"vDNN", "vdnn"}, {"Capuchin", "capuchin"}, {"DeepUM", kDeepum}, {"Ideal", "ideal"}},
      &iteration_seconds, nullptr, deepum_largest_on_16_gb());
  for (SeriesSpec& series : figure.series)
    for (PointSpec& point : series.points) {
      point.experiment.machine = "v100-16";
      point.experiment.overrides = {"host.memory=128GB"};
    }
  return figure;
}

FigureSpec table_sizes() {
  FigureSpec figure{.id = "T4",
                    .title = "Memory of the correlation tables",
                    .unit = "MB",
                    .note =
                        "Each kernel has an execution ID of its own here, and so a block table: 2048 rows of two "
                        "entries, each of a block and four successors, of 8 bytes each.",
                    .is_of_times = false,
                    .series = {}};
  for (const PaperModel& model : deepum_trained())
    figure.series.push_back({.model = model.id,
                             .policy = "",
                             .part = "tables",
                             .measure = &block_tables_megabytes,
                             .published_seen = deepum_table_4(model.id)});
  return figure;
}

FigureSpec page_faults(std::string id, std::string title, std::string unit) {
  FigureSpec figure{.id = std::move(id),
                    .title = std::move(title),
                    .unit = std::move(unit),
                    .note =
                        "The simulator counts blocks. Each is taken for its 512 pages. The table lists other batches "
                        "of BERT than the figures; its rows are taken in their order.",
                    .series = {}};
  add_series(figure, {{"UM", kUnifiedMemory}, {"DeepUM", kDeepum}}, &thousand_faulted_pages, &deepum_table_5);
  return figure;
}

// There is none where unified memory does not fault.
FigureSpec page_faults_left() {
  FigureSpec figure = page_faults("T5b", "Page faults that are left of those of unified memory", "% of UM");
  figure.percent_of = "UM";
  return figure;
}

}  // namespace

std::vector<FigureSpec> deepum_figures() {
  return {speedups(),
          times(),
          steps(),
          look_ahead(),
          table_shapes(),
          beside_tensorflow(),
          largest_batches(),
          table_sizes(),
          page_faults("T5a", "Pages that come by page faults in an iteration", "thousands"),
          page_faults_left(),
          largest_batches_on_16_gb()};
}

}  // namespace spillway
