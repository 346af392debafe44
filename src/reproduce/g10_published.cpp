#include "reproduce/g10_published.h"

#include <algorithm>
#include <array>
#include <span>

namespace spillway {
namespace {

constexpr double kPage = 4096;  // bytes

// What is not used of a row is 0, and so is what failed.
struct Row {
  std::string_view model, policy;
  double x;
  double values[7];
};

// Figure 11, cycles of an iteration: Base UVM, FlashNeuron, DeepUM+, G10-GDS, G10-Host, G10, Ideal.
constexpr Row kFigure11[] = {
    {"BERT-256", "", 0, {23580084389, 12258600000, 10992552904, 10851936000, 9586308000, 8773229325, 8742558777}},
    {"ViT-1280", "", 0, {29519610761, 0, 9069040214, 7891464000, 7480380000, 6647685439, 4459141336}},
    {"Inceptionv3-1536", "", 0, {337188727906, 0, 106402260905, 96408720000, 78443760000, 73303772339, 71633241480}},
    {"ResNet152-1280",
     "",
     0,
     {562689016883, 210313199999, 158428482477, 186429600000, 138846000000, 137304113890, 135107260924}},
    {"SENet154-1024",
     "",
     0,
     {876972455232, 299263200000, 231771470702, 202371600000, 175298400000, 170748120306, 159444570406}},
};

// Figure 12, cycles (FlashNeuron: milliseconds): computing, overlapped, stalled.
constexpr Row kFigure12[] = {
    {"BERT-256", "Base UVM", 0, {9408614845, 0, 15503581680}},
    {"BERT-256", "FlashNeuron", 0, {3879.82, 3405.64, 2930.03}},
    {"BERT-256", "DeepUM+", 0, {4889194570, 3853364207, 2249994127}},
    {"BERT-256", "G10", 0, {6684180047, 2058378730, 30670548}},
    {"ViT-1280", "Base UVM", 0, {4452001397, 0, 25053329486}},
    {"ViT-1280", "DeepUM+", 0, {1167039185, 3292102151, 4609898878}},
    {"ViT-1280", "G10", 0, {2338009318, 2121132018, 2188544103}},
    {"Inceptionv3-1536", "Base UVM", 0, {41788000264, 0, 235710245210}},
    {"Inceptionv3-1536", "DeepUM+", 0, {61885163948, 19254373702, 44275315595}},
    {"Inceptionv3-1536", "G10", 0, {46840661601, 25660126748, 2538077728}},
    {"ResNet152-1280", "Base UVM", 0, {87478975018, 0, 379953470053}},
    {"ResNet152-1280", "FlashNeuron", 0, {20191.6, 92397.8, 62671.5}},
    {"ResNet152-1280", "DeepUM+", 0, {24384777973, 110722482951, 23321221553}},
    {"ResNet152-1280", "G10", 0, {46266618401, 88971398872, 2327609315}},
    {"SENet154-1024", "Base UVM", 0, {112988016133, 0, 671071330553}},
    {"SENet154-1024", "FlashNeuron", 0, {44505.7, 88364.8, 116516}},
    {"SENet154-1024", "DeepUM+", 0, {31529151171, 129561274494, 73972755555}},
    {"SENet154-1024", "G10", 0, {17081887737, 143884361373, 12825228604}},
};

// Figure 14, pages: from the SSD, to the SSD, from host memory, to host memory.
constexpr Row kFigure14[] = {
    {"BERT-256", "Base UVM", 0, {0, 0, 45385726, 45385726}},
    {"BERT-256", "FlashNeuron", 0, {2657376, 2657376, 0, 0}},
    {"BERT-256", "DeepUM+", 0, {0, 0, 13094159, 13094159}},
    {"BERT-256", "G10", 0, {565248, 565248, 1769472, 1769472}},
    {"ViT-1280", "Base UVM", 0, {6142981, 6142981, 52147993, 52147993}},
    {"ViT-1280", "DeepUM+", 0, {0, 0, 16704165, 16531491}},
    {"ViT-1280", "G10", 0, {1275114, 1275114, 5763114, 5763114}},
    {"Inceptionv3-1536", "Base UVM", 0, {16868024, 179317540, 16568024, 50122456}},
    {"Inceptionv3-1536", "DeepUM+", 0, {0, 0, 74599733, 74599733}},
    {"Inceptionv3-1536", "G10", 0, {7038712, 7038712, 20206786, 20206786}},
    {"ResNet152-1280", "Base UVM", 0, {53413406, 294049213, 19255672, 52810104}},
    {"ResNet152-1280", "FlashNeuron", 0, {65040772, 65040772, 0, 0}},
    {"ResNet152-1280", "DeepUM+", 0, {35845670, 35845670, 38077759, 38077759}},
    {"ResNet152-1280", "G10", 0, {28533808, 28533808, 35827967, 35827967}},
    {"SENet154-1024", "Base UVM", 0, {75357583, 479537590, 17413090, 50967522}},
    {"SENet154-1024", "FlashNeuron", 0, {85933120, 85933120, 0, 0}},
    {"SENet154-1024", "DeepUM+", 0, {55208777, 55208777, 47643868, 47643868}},
    {"SENet154-1024", "G10", 0, {48848663, 48848663, 35958986, 35958986}},
};

// Figure 18, cycles by the SSD's GB/s: Base UVM, FlashNeuron, DeepUM+, G10, Ideal.
constexpr Row kFigure18[] = {
    {"BERT-512", "", 6.4, {58661716375, 31092239999, 14036052480, 13409734351, 11799396628}},
    {"BERT-512", "", 12.8, {44546170418, 20515320000, 14025761279, 12546441523, 11799396628}},
    {"BERT-512", "", 19.2, {41641108375, 17067240000, 14027573759, 12527583140, 11799396628}},
    {"BERT-512", "", 25.6, {43989237655, 15347760000, 14028042239, 12527106979, 11799396628}},
    {"BERT-512", "", 32, {27366752424, 14320920000, 14028080639, 12619023677, 11799396628}},
    {"ViT-1280", "", 6.4, {16807310019, 0, 5919267840, 4752427121, 4459141336}},
    {"ViT-1280", "", 12.8, {14708174819, 0, 5917893120, 4991216640, 4459141336}},
    {"ViT-1280", "", 19.2, {14683038095, 0, 5919490560, 4690590105, 4459141336}},
    {"ViT-1280", "", 25.6, {16546240099, 0, 5919567360, 4663418880, 4459141336}},
    {"ViT-1280", "", 32, {13178555729, 0, 5919567360, 4916920320, 4459141336}},
    {"Inceptionv3-1536", "", 6.4, {212444805056, 0, 86472998400, 72039774720, 71633241480}},
    {"Inceptionv3-1536", "", 12.8, {172393333702, 0, 86472998400, 74629731840, 71633241480}},
    {"Inceptionv3-1536", "", 19.2, {167706515553, 0, 86472998400, 72138585600, 71633241480}},
    {"Inceptionv3-1536", "", 25.6, {162189005478, 0, 86472998400, 72134776320, 71633241480}},
    {"Inceptionv3-1536", "", 32, {142470992476, 0, 86472998400, 72123840000, 71633241480}},
    {"ResNet152-1280", "", 6.4, {349900245252, 157513199999, 137575380480, 135155608778, 135107260924}},
    {"ResNet152-1280", "", 12.8, {273361825405, 140578800000, 135680409600, 135661386868, 135107260924}},
    {"ResNet152-1280", "", 19.2, {267037945858, 137686800000, 135641717760, 135712770626, 135107260924}},
    {"ResNet152-1280", "", 25.6, {256187649595, 136570799999, 135641717760, 135520168519, 135107260924}},
    {"ResNet152-1280", "", 32, {213395443644, 136135200000, 135641717760, 135500037120, 135107260924}},
    {"SENet154-1024", "", 6.4, {572047441270, 214111199999, 181142008320, 162121320960, 159444570406}},
    {"SENet154-1024", "", 12.8, {455389915510, 178260000000, 168667829760, 161534630400, 159444570406}},
    {"SENet154-1024", "", 19.2, {452462168950, 170776800000, 168037900800, 162758599680, 159444570406}},
    {"SENet154-1024", "", 25.6, {465804761406, 167906400000, 167872097280, 160712432640, 159444570406}},
    {"SENet154-1024", "", 32, {335865285050, 166207200000, 167795758080, 160551237120, 159444570406}},
};

// Figure 19, G10's part of ideal by noise in percent.
constexpr Row kFigure19[] = {
    {"BERT-256", "", 0, {0.99650}},          {"BERT-256", "", 5, {0.99649}},
    {"BERT-256", "", 10, {0.99647}},         {"BERT-256", "", 15, {0.99646}},
    {"BERT-256", "", 20, {0.99644}},         {"BERT-256", "", 25, {0.99642}},
    {"ViT-1280", "", 0, {0.67078}},          {"ViT-1280", "", 5, {0.66994}},
    {"ViT-1280", "", 10, {0.66911}},         {"ViT-1280", "", 15, {0.66828}},
    {"ViT-1280", "", 20, {0.66745}},         {"ViT-1280", "", 25, {0.66662}},
    {"Inceptionv3-1536", "", 0, {0.97721}},  {"Inceptionv3-1536", "", 5, {0.97693}},
    {"Inceptionv3-1536", "", 10, {0.97664}}, {"Inceptionv3-1536", "", 15, {0.97636}},
    {"Inceptionv3-1536", "", 20, {0.97607}}, {"Inceptionv3-1536", "", 25, {0.97578}},
    {"ResNet152-1280", "", 0, {0.98400}},    {"ResNet152-1280", "", 5, {0.98366}},
    {"ResNet152-1280", "", 10, {0.98350}},   {"ResNet152-1280", "", 15, {0.98329}},
    {"ResNet152-1280", "", 20, {0.98303}},   {"ResNet152-1280", "", 25, {0.98287}},
    {"SENet154-1024", "", 0, {0.93380}},     {"SENet154-1024", "", 5, {0.93263}},
    {"SENet154-1024", "", 10, {0.93062}},    {"SENet154-1024", "", 15, {0.93081}},
    {"SENet154-1024", "", 20, {0.93146}},    {"SENet154-1024", "", 25, {0.93194}},
};

// Figure 16, G10's cycles by GB of host memory.
constexpr Row kFigure16[] = {
    {"BERT-256", "", 0, {12341928800}},           {"BERT-256", "", 16, {8773229325}},
    {"BERT-256", "", 32, {8773229325}},           {"BERT-256", "", 64, {8773229325}},
    {"BERT-256", "", 128, {8773229325}},          {"BERT-256", "", 256, {8773229325}},
    {"ViT-1280", "", 0, {17949831696}},           {"ViT-1280", "", 16, {5949926570}},
    {"ViT-1280", "", 32, {6647685439}},           {"ViT-1280", "", 64, {6647685439}},
    {"ViT-1280", "", 128, {6647685439}},          {"ViT-1280", "", 256, {6647685439}},
    {"Inceptionv3-1536", "", 0, {137788384845}},  {"Inceptionv3-1536", "", 16, {117824519462}},
    {"Inceptionv3-1536", "", 32, {84400011796}},  {"Inceptionv3-1536", "", 64, {73303772339}},
    {"Inceptionv3-1536", "", 128, {73303772339}}, {"Inceptionv3-1536", "", 256, {73303772339}},
    {"ResNet152-1280", "", 0, {287288155712}},    {"ResNet152-1280", "", 16, {267176068631}},
    {"ResNet152-1280", "", 32, {246625212878}},   {"ResNet152-1280", "", 64, {172612029217}},
    {"ResNet152-1280", "", 128, {137304113890}},  {"ResNet152-1280", "", 256, {137304113890}},
    {"SENet154-1024", "", 0, {380141374801}},     {"SENet154-1024", "", 16, {362396685554}},
    {"SENet154-1024", "", 32, {343308407640}},    {"SENet154-1024", "", 64, {296152349858}},
    {"SENet154-1024", "", 128, {170748120306}},   {"SENet154-1024", "", 256, {163324244226}},
};

const Row* find(std::span<const Row> rows, std::string_view model, std::string_view policy, double x) {
  const auto row = std::ranges::find_if(
      rows, [&](const Row& one) { return one.model == model && one.policy == policy && one.x == x; });
  return row == rows.end() ? nullptr : &*row;
}

// The place of a name among the columns.
std::optional<std::size_t> place_of(std::span<const std::string_view> columns, std::string_view name) {
  const auto column = std::ranges::find(columns, name);
  if (column == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(column - columns.begin());
}

// Of two times of a row: percent of the last named column in another one.
std::optional<double> percent_of_ideal_in(const Row* row, std::span<const std::string_view> columns,
                                          std::string_view policy) {
  const auto at = place_of(columns, policy);
  if (row == nullptr || !at || row->values[*at] == 0) return std::nullopt;
  return 100 * row->values[columns.size() - 1] / row->values[*at];
}

}  // namespace

std::optional<double> g10_figure_11(std::string_view model, std::string_view policy) {
  static constexpr std::array<std::string_view, 7> kColumns{"Base UVM", "FlashNeuron", "DeepUM+", "G10-GDS",
                                                            "G10-Host", "G10",         "Ideal"};
  return percent_of_ideal_in(find(kFigure11, model, "", 0), kColumns, policy);
}

std::optional<double> g10_figure_12(std::string_view model, std::string_view policy, std::string_view part) {
  static constexpr std::array<std::string_view, 3> kColumns{"computing", "overlapped", "stalled"};
  const Row* row = find(kFigure12, model, policy, 0);
  const auto at = place_of(kColumns, part);
  if (row == nullptr || !at) return std::nullopt;
  return 100 * row->values[*at] / (row->values[0] + row->values[1] + row->values[2]);
}

std::optional<double> g10_figure_14(std::string_view model, std::string_view policy, std::string_view part) {
  static constexpr std::array<std::string_view, 2> kColumns{"SSD", "host"};
  const Row* row = find(kFigure14, model, policy, 0);
  const auto at = place_of(kColumns, part);
  if (row == nullptr || !at) return std::nullopt;
  return (row->values[2 * *at] + row->values[2 * *at + 1]) * kPage / 1e9;
}

std::optional<double> g10_ssd_writes(std::string_view model, std::string_view policy) {
  const Row* row = find(kFigure14, model, policy, 0);
  return row == nullptr ? std::nullopt : std::optional(row->values[1] * kPage / 1e9);
}

std::optional<double> g10_figure_16(std::string_view model, double host_gb) {
  const Row *row = find(kFigure16, model, "", host_gb), *ideal = find(kFigure11, model, "", 0);
  if (row == nullptr || ideal == nullptr) return std::nullopt;
  return 100 * ideal->values[6] / row->values[0];
}

std::optional<double> g10_figure_18(std::string_view model, std::string_view policy, double ssd_gb_per_second) {
  static constexpr std::array<std::string_view, 5> kColumns{"Base UVM", "FlashNeuron", "DeepUM+", "G10", "Ideal"};
  return percent_of_ideal_in(find(kFigure18, model, "", ssd_gb_per_second), kColumns, policy);
}

std::optional<double> g10_figure_19(std::string_view model, double noise_percent) {
  const Row* row = find(kFigure19, model, "", noise_percent);
  return row == nullptr ? std::nullopt : std::optional(100 * row->values[0]);
}

}  // namespace spillway
