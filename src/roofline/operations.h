#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "trace/trace.h"

namespace spillway {

// Operators whose times come from the same limits.
enum class OperatorClass : std::uint8_t {
  convolution,
  product,
  attention,
  recurrent,
  normalization,
  pooling,
  elementwise
};
inline constexpr std::array kOperatorClasses{
    OperatorClass::convolution,   OperatorClass::product, OperatorClass::attention,  OperatorClass::recurrent,
    OperatorClass::normalization, OperatorClass::pooling, OperatorClass::elementwise};
std::string_view to_text(OperatorClass operators);

// By the name that PyTorch gives it ("aten::mm", overload names aside); elementwise if it is none of the others.
OperatorClass operator_class_of(std::string_view kernel_name);

// Bytes that a kernel reads and writes. Of rows that nobody knows beforehand (an embedding's) it touches no more than
// its largest other access holds, which is what they are written to or come from: all of them only where there is none.
double bytes_touched(const Kernel& kernel);

// Floating-point operations of a kernel, a multiplication and an addition counting as two. From the shapes that its
// operator was given; without these, and in the last three classes, one for each element that it reads or writes
// (bytes_touched).
double operations_of(const Kernel& kernel);

}  // namespace spillway
