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

// Floating-point operations of a kernel, a multiplication and an addition counting as two. From the shapes that its
// operator was given; without these, and in the last three classes, one for each element that it reads or writes.
double operations_of(const Kernel& kernel);

}  // namespace spillway
