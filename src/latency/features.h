#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "trace/trace.h"

namespace spillway {

// How many shapes of what an operator is given count, in the order of its arguments, and how many sizes of each: its
// last ones, of which the first stands for the product of all before it, too. Products of matrices, convolutions and
// attention, forward and backward, are told apart by these.
inline constexpr std::size_t kShapes = 3, kSizesOfShape = 4;

// What a kernel's time is predicted from: logarithms, so that a product of sizes is a sum. How many operations a matrix
// product takes is such a product of its three sizes, so shapes or bytes imply it in a trace without `flops`.
// Another feature is another name here and a line in features_of(); files made before are refused then.
inline constexpr std::array<std::string_view, 4 + kShapes * kSizesOfShape> kFeatureNames{
    "log_largest_read_bytes", "log_other_read_bytes",  "log_written_bytes",     "log_flops",  //
    "log_size_0_of_shape_0",  "log_size_1_of_shape_0", "log_size_2_of_shape_0", "log_size_3_of_shape_0",
    "log_size_0_of_shape_1",  "log_size_1_of_shape_1", "log_size_2_of_shape_1", "log_size_3_of_shape_1",
    "log_size_0_of_shape_2",  "log_size_1_of_shape_2", "log_size_2_of_shape_2", "log_size_3_of_shape_2"};
using Features = std::array<float, kFeatureNames.size()>;
Features features_of(const Kernel& kernel);  // 0 for what is none or not known

double bytes_moved(const Kernel& kernel);  // that it reads and writes; all accesses may be more than 64 bits can say

// The name without a number behind it: "conv_12" and "conv_13" are of one class. A digit without a separator before it
// is part of the name ("conv2d", "log10").
std::string_view class_of(std::string_view kernel_name);

}  // namespace spillway
