#include "executor/tensor_victims.h"

#include <bit>

#include "base/check.h"

namespace spillway {

std::size_t TensorVictims::class_of(Bytes bytes) { return static_cast<std::size_t>(std::bit_width(bytes.value)); }

void TensorVictims::used(BlockRange blocks, Bytes bytes) {
  if (bytes < least_ || blocks.count == 0) return;
  gone(blocks);
  tensors_[blocks.first] = {blocks, bytes, ++now_};
  by_use_[class_of(bytes)][now_] = blocks.first;
}

void TensorVictims::gone(BlockRange blocks) {
  const auto found = tensors_.find(blocks.first);
  if (found == tensors_.end()) return;
  by_use_[class_of(found->second.bytes)].erase(found->second.used_at);
  tensors_.erase(found);
}

std::optional<BlockRange> TensorVictims::take(Bytes needed, const std::function<bool(BlockRange)>& may_leave) {
  const auto least_recent = [&](std::size_t first_class, Bytes at_least) {
    const Tensor* best = nullptr;
    for (std::size_t at = first_class; at < by_use_.size(); ++at)
      for (const auto& [used_at, first] : by_use_[at]) {
        if (best != nullptr && best->used_at < used_at) break;
        const Tensor& tensor = tensors_.at(first);
        if (tensor.bytes < at_least || !may_leave(tensor.blocks)) continue;
        best = &tensor;
        break;
      }
    return best;
  };
  const Tensor* victim = least_recent(class_of(needed), needed);
  if (victim == nullptr) victim = least_recent(0, {});
  if (victim == nullptr) return std::nullopt;
  const BlockRange blocks = victim->blocks;
  gone(blocks);
  return blocks;
}

}  // namespace spillway
