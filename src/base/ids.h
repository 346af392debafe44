#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace spillway {

// An index into one particular table. Ids are ours and dense, never addresses: those repeat (pytorch#143093).
template <class Tag>
struct Id {
  std::uint32_t value{};
  friend constexpr auto operator<=>(Id, Id) = default;
};

using TensorId = Id<struct TensorTag>;
using KernelId = Id<struct KernelTag>;            // position in the iteration
inline constexpr KernelId kNoKernel{UINT32_MAX};  // of one that has no place there
using BlockId = Id<struct BlockTag>;
using MoveId = Id<struct MoveTag>;
using StreamId = Id<struct StreamTag>;  // a sequence of kernels that run one after another: a thread of the script

// The same in every iteration, unlike the ids above: hashes of how a kernel was called (DeepUM section 3.1) and of how
// a tensor was made. 0: unknown.
template <class Tag>
struct Label {
  std::uint64_t value{};
  friend constexpr auto operator<=>(Label, Label) = default;
};

using ExecutionId = Label<struct ExecutionTag>;
using TensorLabel = Label<struct TensorLabelTag>;

}  // namespace spillway

template <class Tag>
struct std::hash<spillway::Id<Tag>> {
  std::size_t operator()(spillway::Id<Tag> id) const noexcept { return std::hash<std::uint32_t>{}(id.value); }
};

template <class Tag>
struct std::hash<spillway::Label<Tag>> {
  std::size_t operator()(spillway::Label<Tag> label) const noexcept { return std::hash<std::uint64_t>{}(label.value); }
};
