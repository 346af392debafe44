#include "reproduce/deepum_published.h"

#include <algorithm>

namespace spillway {
namespace {

// Zero where it failed.
struct DeepumRow {
  std::string_view model;
  double um, lms, lms_mod, deepum;  // seconds of 100 iterations
  double um_faults, deepum_faults;
  double table_megabytes;
};

constexpr DeepumRow kDeepumRows[] = {
    {"GPT-2-XL-3", 4597, 1747, 1990, 1429, 7437122, 687, 308},
    {"GPT-2-XL-5", 7706, 0, 3020, 2332, 12395173, 7612, 344},
    {"GPT-2-XL-7", 10981, 0, 3997, 3163, 17210705, 2549, 348},
    {"GPT-2-L-3", 1865, 885, 927, 605, 2948920, 235, 169},
    {"GPT-2-L-5", 3839, 0, 1672, 1163, 6055304, 476, 213},
    {"GPT-2-L-7", 5727, 0, 0, 1695, 8974631, 884, 232},
    {"BERT-L-14", 978, 611, 665, 290, 1171717, 2913, 78},
    {"BERT-L-16", 1307, 0, 786, 403, 1777710, 84, 75},
    {"BERT-L-18", 1430, 0, 0, 438, 1834746, 1355, 74},
    {"BERT-B-29", 135, 450, 456, 129, 88459, 1595, 19},
    {"BERT-B-30", 273, 0, 0, 158, 349106, 4536, 27},
    {"BERT-B-31", 578, 0, 0, 222, 1077223, 5531, 33},
    {"DLRM-96K", 1203, 1291, 1153, 1005, 1263865, 3706, 13},
    {"DLRM-128K", 1657, 1789, 1602, 1363, 1712886, 6912, 19},
    {"DLRM-160K", 2123, 0, 0, 1682, 2583610, 22624, 30},
    {"DLRM-192K", 2894, 0, 0, 2201, 3471958, 32139, 31},
    {"DLRM-224K", 3318, 0, 0, 2507, 4278593, 38437, 35},
    {"ResNet152-1280", 31002, 3926, 3992, 3922, 121380940, 34323, 115},
    {"ResNet152-1536", 38173, 4754, 4972, 4767, 144893625, 72598, 128},
    {"ResNet152-1792", 49283, 0, 6340, 5965, 182230994, 144455, 130},
    {"ResNet200-1024", 32420, 4560, 6124, 4585, 126734315, 107093, 144},
    {"ResNet200-1280", 44900, 5470, 5571, 5835, 173517031, 68039, 151},
    {"ResNet200-1536", 57302, 7187, 8407, 7235, 207933814, 118472, 169},
};

const DeepumRow* deepum_row(std::string_view model) {
  const auto* const row = std::ranges::find(kDeepumRows, model, &DeepumRow::model);
  return row == std::ranges::end(kDeepumRows) ? nullptr : row;
}

std::optional<double> unless_zero(double value) { return value > 0 ? std::optional(value) : std::nullopt; }

}  // namespace

std::vector<std::string_view> deepum_model_names() {
  std::vector<std::string_view> names;
  for (const DeepumRow& row : kDeepumRows) names.push_back(row.model);
  return names;
}

std::optional<double> deepum_figure_9b(std::string_view model, std::string_view policy) {
  const DeepumRow* row = deepum_row(model);
  if (row == nullptr) return std::nullopt;
  if (policy == "UM") return unless_zero(row->um);
  if (policy == "LMS") return unless_zero(row->lms);
  if (policy == "LMS-mod") return unless_zero(row->lms_mod);
  if (policy == "DeepUM") return unless_zero(row->deepum);
  return std::nullopt;
}

std::optional<double> deepum_table_5(std::string_view model, std::string_view policy) {
  const DeepumRow* row = deepum_row(model);
  if (row == nullptr) return std::nullopt;
  if (policy == "UM") return row->um_faults / 1000;
  if (policy == "DeepUM") return row->deepum_faults / 1000;
  return std::nullopt;
}

std::optional<double> deepum_table_4(std::string_view model) {
  const DeepumRow* row = deepum_row(model);
  return row == nullptr ? std::nullopt : std::optional(row->table_megabytes);
}

}  // namespace spillway
