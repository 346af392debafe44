#include "machines/sim/layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "plan/validate.h"

namespace spillway {
namespace {

constexpr std::uint64_t kAlignment = 64;

// Puts small tensors into one block until it is full.
class Packer {
 public:
  BlockRange pack(Bytes bytes, std::vector<Bytes>& block_bytes) {
    const Bytes aligned{(bytes.value + kAlignment - 1) / kAlignment * kAlignment};
    if (!open_ || block_bytes[open_->value] + aligned > kBlockBytes) {
      open_ = BlockId{static_cast<std::uint32_t>(block_bytes.size())};
      block_bytes.push_back(Bytes{});
    }
    block_bytes[open_->value] += aligned;
    return {*open_, 1};
  }

 private:
  std::optional<BlockId> open_;
};

}  // namespace

Layout plain_layout(const Trace& trace) {
  Layout layout;
  layout.tensors.reserve(trace.tensors.size());
  Packer persistent, passing;
  for (const Tensor& tensor : trace.tensors) {
    if (tensor.bytes < kLeastMovedBytes) {
      layout.tensors.push_back((tensor.persistent ? persistent : passing).pack(tensor.bytes, layout.block_bytes));
      continue;
    }
    const std::uint64_t count = (tensor.bytes.value + kBlockBytes.value - 1) / kBlockBytes.value;
    CHECK(layout.block_bytes.size() + count < UINT32_MAX);
    layout.tensors.push_back(
        {{static_cast<std::uint32_t>(layout.block_bytes.size())}, static_cast<std::uint32_t>(count)});
    layout.block_bytes.insert(layout.block_bytes.end(), count - 1, kBlockBytes);
    layout.block_bytes.push_back(tensor.bytes - kBlockBytes * (count - 1));
  }
  return layout;
}

std::vector<BlockAccess> Layout::accesses(const Trace& trace, const Kernel& kernel, bool whole_tensors) const {
  std::vector<BlockAccess> result;
  result.reserve(kernel.reads.size() + kernel.writes.size());
  const auto blocks_of = [&](const Access& access) {
    const BlockRange all = tensors[access.tensor.value];
    if (whole_tensors || trace[access.tensor].bytes < kLeastMovedBytes) return all;
    const std::uint64_t begin = begins.empty() ? 0 : begins[access.tensor.value].value;
    const std::uint64_t first = (begin + access.begin.value) / kBlockBytes.value;
    const std::uint64_t last = (begin + access.end.value - 1) / kBlockBytes.value;
    return BlockRange{{static_cast<std::uint32_t>(all.first.value + first)},
                      static_cast<std::uint32_t>(last - first + 1)};
  };
  std::unordered_map<std::uint32_t, std::size_t> read;  // the last read of each tensor that is written, too
  for (const Access& access : kernel.writes) read.emplace(access.tensor.value, SIZE_MAX);
  for (const Access& access : kernel.reads) {
    if (const auto written = read.find(access.tensor.value); written != read.end()) written->second = result.size();
    result.push_back({.blocks = blocks_of(access), .tensor = label_of(access.tensor)});
  }
  for (const Access& access : kernel.writes) {
    const BlockRange blocks = blocks_of(access);
    const std::size_t before = read[access.tensor.value];
    if (before != SIZE_MAX && result[before].blocks == blocks)
      result[before].writes = true;
    else
      result.push_back({.blocks = blocks, .tensor = label_of(access.tensor), .writes = true});
  }
  return result;
}

}  // namespace spillway
