#include "hook/cuda/tensor_lists.h"

#include <array>

namespace spillway {
namespace {

constexpr std::size_t kWord = 8;

// The constants depth_to_max_* of MultiTensorApply.cuh, by the number of lists less one.
struct Rooms {
  std::array<std::size_t, 5> tensors, tensors_with_scalars;
  std::array<std::size_t, 2> tensors_with_complex_doubles;
  std::size_t blocks, block_bytes;
};
constexpr std::array kRooms = {
    Rooms{{110, 64, 48, 36, 30}, {96, 64, 48, 36, 30}, {72, 60}, 320, 1},               // CUDA 12: 4 KiB
    Rooms{{770, 448, 336, 252, 210}, {672, 448, 336, 252, 210}, {504, 420}, 2240, 2}};  // CUDA 13: 32 KiB

enum class Structure { plain, with_scalars, fused };

constexpr std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

// The compiler's layout of the structure's members, in their order in the header.
constexpr TensorLists layout_of(Structure structure, std::size_t lists, const Rooms& rooms, std::size_t scalar_bytes) {
  TensorLists layout{.lists = lists, .blocks = rooms.blocks, .block_bytes = rooms.block_bytes};
  const bool complex_doubles = scalar_bytes == 16 && lists <= 2;
  layout.tensors = structure != Structure::with_scalars ? rooms.tensors[lists - 1]
                   : complex_doubles                    ? rooms.tensors_with_complex_doubles[lists - 1]
                                                        : rooms.tensors_with_scalars[lists - 1];
  std::size_t at = (lists + 1) * layout.tensors * kWord;  // addresses, numel_for_tensor
  if (structure == Structure::with_scalars) at += layout.tensors * scalar_bytes;
  if (structure == Structure::fused) {
    layout.steps_at = at;
    at += layout.tensors * kWord;
  }
  layout.blocks_at = rounded(at, rooms.block_bytes);
  at = rounded(layout.blocks_at + rooms.blocks * rooms.block_bytes, 4) + rooms.blocks * 4;  // block_to_chunk
  if (structure != Structure::with_scalars) at += 4;                                        // start_tensor_this_launch
  layout.bytes = rounded(at, structure == Structure::with_scalars && scalar_bytes == 16 ? 16 : kWord);
  return layout;
}

// "...18TensorListMetadataILi4EE...": the first number among the template's arguments.
std::optional<std::size_t> number_of_lists(std::string_view kernel, std::string_view structure) {
  const auto from = kernel.find(structure) + structure.size();
  const auto found = kernel.find("Li", from);
  if (found == kernel.npos || found + 3 >= kernel.size() || kernel[found + 3] != 'E') return std::nullopt;
  const char digit = kernel[found + 2];
  return digit >= '1' && digit <= '5' ? std::optional(static_cast<std::size_t>(digit - '0')) : std::nullopt;
}

}  // namespace

std::optional<TensorLists> tensor_lists_of(std::string_view kernel, std::size_t parameter_bytes) {
  if (!kernel.contains("multi_tensor_apply_kernel")) return std::nullopt;
  const auto layout_with = [&](std::string_view name, Structure structure,
                               std::initializer_list<std::size_t> sizes_of_scalars) -> std::optional<TensorLists> {
    const auto lists = number_of_lists(kernel, name);
    for (const std::size_t scalar_bytes : sizes_of_scalars)
      for (const Rooms& rooms : kRooms)
        if (lists)
          if (const TensorLists layout = layout_of(structure, *lists, rooms, scalar_bytes);
              layout.bytes == parameter_bytes)
            return layout;
    return std::nullopt;
  };
  // Room for fewer complex<double> can have the same size as room for more complex<float>.
  constexpr std::string_view kComplexDoubles = "28TensorListScalarListMetadataIN3c107complexIdEE";
  constexpr std::string_view kScalars = "28TensorListScalarListMetadataI",
                             kFused = "32FusedOptimizerTensorListMetadataI", kPlain = "18TensorListMetadataI";
  if (kernel.contains(kComplexDoubles)) return layout_with(kComplexDoubles, Structure::with_scalars, {16});
  if (kernel.contains(kScalars)) return layout_with(kScalars, Structure::with_scalars, {1, 2, 4, 8});
  if (kernel.contains(kFused)) return layout_with(kFused, Structure::fused, {0});
  if (kernel.contains(kPlain)) return layout_with(kPlain, Structure::plain, {0});
  return std::nullopt;
}

}  // namespace spillway
