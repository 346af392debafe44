#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/lifetimes.h"
#include "memory/tier.h"
#include "trace/trace.h"

namespace spillway {

// Where each tensor of a trace lies in a run's memory: its first byte, counted from the start of the managed range.
// By TensorId; nothing for tensors that are not to be planned for.
using Places = std::vector<std::optional<std::uint64_t>>;

// Longer rows are cut, so that a part can leave or come back by itself. A row has one block at least.
inline constexpr Bytes kMostInRow = 16_MiB;

// A trace as a run's memory sees it. Tensors share blocks at their ends, and one block serves several tensors one after
// the other, so what can move is not a tensor but a row of blocks that are used alike: those are the tensors here. They
// take whole blocks, from the first use of any of their bytes to the death of the last tensor in them.
struct BlockTrace {
  Trace trace;                    // with the kernels of the original
  std::vector<BlockRange> homes;  // by TensorId of `trace`
};

// Bytes that are carried into the next iteration must lie where they are found there. Time grows with the blocks that
// all accesses touch.
BlockTrace block_trace(const Trace& trace, const Lifetimes& lifetimes, const Places& places, Bytes block_bytes);

// Those of so many bytes that are carried into the next iteration under another id, and what they become there: they
// lie elsewhere each time, so that no plan can name their blocks.
std::vector<TensorId> replaced_tensors(const Trace& trace, Bytes at_least);

// Rows of a trace, and after them these tensors of it, which lie in none.
Trace with_tensors(Trace rows, const Trace& trace, std::span<const TensorId> tensors);

}  // namespace spillway
