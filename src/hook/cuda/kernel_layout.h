#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "hook/cuda/tensor_lists.h"

namespace spillway {

// What a kernel takes, in the driver's words: offsets within the buffer of all parameters.
struct KernelLayout {
  struct Parameter {
    std::size_t offset = 0, bytes = 0;
  };
  std::vector<Parameter> parameters;
  bool is_known = false;                    // false: nobody could say
  std::optional<TensorLists> tensor_lists;  // of the first parameter
};

// How cuLaunchKernel's caller hands over the values.
struct KernelArguments {
  void** each = nullptr;              // kernelParams: one pointer a parameter
  std::span<const std::byte> packed;  // CU_LAUNCH_PARAM_BUFFER_POINTER of `extra`: all in one buffer
  std::size_t grid = 0;               // blocks in x
};

// Calls f(word) for each 8 bytes that could be a pointer: those at offsets that are multiples of 8, by which compilers
// align pointers. False: there may be others, since nobody knows how many parameters there are, or where.
template <class F>
bool for_each_word(const KernelLayout& layout, const KernelArguments& arguments, F f) {
  const auto words_in = [&](const std::byte* bytes, std::size_t offset, std::size_t count) {
    for (std::size_t at = (8 - offset % 8) % 8; at + 8 <= count; at += 8) {
      std::uint64_t word;
      std::memcpy(&word, bytes + at, sizeof word);
      f(word);
    }
  };
  if (!layout.is_known) {
    words_in(arguments.packed.data(), 0, arguments.packed.size());
    return arguments.packed.data() != nullptr;
  }
  if (arguments.each == nullptr && arguments.packed.data() == nullptr) return layout.parameters.empty();
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    const auto [offset, size] = layout.parameters[i];
    if (arguments.each == nullptr && (offset > arguments.packed.size() || size > arguments.packed.size() - offset))
      return false;
    const auto* bytes =
        arguments.each != nullptr ? static_cast<const std::byte*>(arguments.each[i]) : arguments.packed.data() + offset;
    if (i == 0 && layout.tensor_lists && for_each_tensor(*layout.tensor_lists, bytes, arguments.grid, f)) continue;
    words_in(bytes, offset, size);
  }
  return true;
}

}  // namespace spillway
