#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace spillway {

// What DeepUM's paper has in numbers (ASPLOS'23, figure 9(b), tables 4 and 5). Nothing where a case failed. Models are
// named with their batch: "BERT-L-14".

std::vector<std::string_view> deepum_model_names();
// Seconds of 100 iterations: "UM", "LMS", "LMS-mod", "DeepUM".
std::optional<double> deepum_figure_9b(std::string_view model, std::string_view policy);
// Page faults of an iteration, in thousands: "UM", "DeepUM". The table's batches of BERT are the wrong ones; its rows
// are in the order of the other tables.
std::optional<double> deepum_table_5(std::string_view model, std::string_view policy);
// Megabytes of all correlation tables. Its batches of BERT are the wrong ones, too.
std::optional<double> deepum_table_4(std::string_view model);

}  // namespace spillway
