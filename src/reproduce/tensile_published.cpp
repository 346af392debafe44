#include "reproduce/tensile_published.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace spillway {
namespace {

// MSR, EOR and CBR, as the paper calls them.
struct TensileRow {
  std::string_view network, system;
  double saving, overhead, benefit;
};

constexpr TensileRow kTable1[] = {
    {"VGG-16", "TENSILE", 0.2670, 1.6287, 0.1639},         {"VGG-16", "cold start", 0.2670, 6.0128, 0.0444},
    {"VGG-16", "updated", 0.3192, 1.2475, 0.2559},         {"Inceptionv3", "TENSILE", 0.4361, 1.6468, 0.2648},
    {"Inceptionv3", "cold start", 0.4361, 3.1128, 0.1401}, {"Inceptionv3", "updated", 0.4788, 1.4839, 0.3227},
    {"Inceptionv4", "TENSILE", 0.5154, 1.4281, 0.3609},    {"Inceptionv4", "cold start", 0.5154, 2.6727, 0.1929},
    {"Inceptionv4", "updated", 0.5558, 1.2898, 0.4309},    {"ResNet-50", "TENSILE", 0.4258, 1.5540, 0.2740},
    {"ResNet-50", "cold start", 0.4258, 3.5395, 0.1203},   {"ResNet-50", "updated", 0.4647, 1.3813, 0.3364},
    {"DenseNet-121", "TENSILE", 0.5135, 1.1678, 0.4397},   {"DenseNet-121", "cold start", 0.5135, 2.2532, 0.2279},
    {"DenseNet-121", "updated", 0.5236, 1.0664, 0.4910},
};

// The extra overhead and the part of it that predicting takes. In the table DenseNet's seconds of predicting are a copy
// of its overhead; this part of it is not.
struct FirstIteration {
  std::string_view network;
  double tensile, predicting, capuchin;
};
constexpr FirstIteration kTable2[] = {
    {"VGG-16", 1.2523, 0.2067, 5.8053},        {"Inceptionv3", 1.4744, 0.3699, 6.7529},
    {"Inceptionv4", 1.3797, 0.2865, 10.2088},  {"ResNet-50", 1.3924, 0.3198, 9.6073},
    {"DenseNet-121", 1.3855, 0.3335, 10.0925},
};

constexpr TensileRow kTable3[] = {
    {"VGG-16", "vDNN", 0.1109, 1.7835, 0.0622},          {"VGG-16", "Capuchin", 0.2558, 1.8304, 0.1398},
    {"VGG-16", "TENSILE", 0.2670, 1.6287, 0.1639},       {"Inceptionv3", "vDNN", 0.1633, 2.5184, 0.0648},
    {"Inceptionv3", "Capuchin", 0.4331, 2.7745, 0.1561}, {"Inceptionv3", "TENSILE", 0.4361, 1.6468, 0.2648},
    {"Inceptionv4", "vDNN", 0.1903, 2.5028, 0.0760},     {"Inceptionv4", "Capuchin", 0.5129, 3.2362, 0.1585},
    {"Inceptionv4", "TENSILE", 0.5154, 1.4281, 0.3609},  {"ResNet-50", "vDNN", 0.1733, 2.2981, 0.0754},
    {"ResNet-50", "Capuchin", 0.3859, 2.2320, 0.1729},   {"ResNet-50", "TENSILE", 0.4258, 1.5540, 0.2740},
    {"DenseNet-121", "vDNN", 0.1381, 2.6148, 0.0528},    {"DenseNet-121", "Capuchin", 0.4860, 3.4400, 0.1413},
    {"DenseNet-121", "TENSILE", 0.5135, 1.1678, 0.4397},
};

constexpr TensileRow kTable4[] = {{"", "vDNN", 0.0580, 1.6297, 0.0356},
                                  {"", "Capuchin", 0.1150, 7.6545, 0.0150},
                                  {"", "TENSILE", 0.1565, 1.1589, 0.1350}};

std::optional<double> value_of(std::span<const TensileRow> table, std::string_view network, std::string_view system,
                               TensileMeasure measure) {
  const auto found = std::ranges::find_if(
      table, [&](const TensileRow& row) { return row.network == network && row.system == system; });
  if (found == table.end()) return std::nullopt;
  switch (measure) {
    case TensileMeasure::memory_saving:
      return found->saving;
    case TensileMeasure::extra_overhead:
      return found->overhead;
    case TensileMeasure::cost_benefit:
      return found->benefit;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string_view> tensile_network_names() {
  std::vector<std::string_view> names;
  for (const TensileRow& row : kTable3)
    if (names.empty() || names.back() != row.network) names.push_back(row.network);
  return names;
}

std::optional<double> tensile_table_1(std::string_view network, std::string_view phase, TensileMeasure measure) {
  return value_of(kTable1, network, phase, measure);
}

std::optional<double> tensile_table_2(std::string_view network, std::string_view system) {
  const auto found = std::ranges::find(kTable2, network, &FirstIteration::network);
  if (found == std::end(kTable2)) return std::nullopt;
  if (system == "TENSILE") return found->tensile;
  if (system == "less prediction") return found->tensile - found->predicting;
  if (system == "Capuchin") return found->capuchin;
  return std::nullopt;
}

std::optional<double> tensile_table_3(std::string_view network, std::string_view system, TensileMeasure measure) {
  return value_of(kTable3, network, system, measure);
}

std::optional<double> tensile_table_4(std::string_view system, TensileMeasure measure) {
  return value_of(kTable4, "", system, measure);
}

}  // namespace spillway
