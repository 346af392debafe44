#include "executor/tensor_victims.h"

#include <bit>
#include <iterator>

#include "base/check.h"

namespace spillway {

std::size_t TensorVictims::class_of(Bytes bytes) { return static_cast<std::size_t>(std::bit_width(bytes.value)); }

void TensorVictims::put(Tensor& tensor, bool is_there) {
  auto& others = by_use_[class_of(tensor.bytes)];
  if (tensor.is_there) others.erase(tensor.used_at);
  tensor.is_there = is_there;
  if (is_there) others[tensor.used_at] = tensor.blocks.first;
}

void TensorVictims::used(BlockRange blocks, Bytes bytes) {
  if (bytes < least_ || blocks.count == 0) return;
  Tensor& tensor = tensors_[blocks.first];
  put(tensor, false);
  tensor = {blocks, bytes, ++now_};
  put(tensor, true);
}

void TensorVictims::arrived(BlockId block) {
  const auto later = tensors_.upper_bound(block);
  if (later == tensors_.begin()) return;
  Tensor& tensor = std::prev(later)->second;
  if (tensor.blocks.contains(block) && !tensor.is_there) put(tensor, true);
}

void TensorVictims::left(BlockRange blocks) {
  if (const auto found = tensors_.find(blocks.first); found != tensors_.end()) put(found->second, false);
}

void TensorVictims::gone(BlockRange blocks) {
  left(blocks);
  tensors_.erase(blocks.first);
}

std::optional<BlockRange> TensorVictims::take(Bytes needed, const std::function<bool(BlockRange)>& may_leave) {
  const auto least_recent = [&](std::size_t first_class, Bytes at_least) {
    Tensor* best = nullptr;
    for (std::size_t at = first_class; at < by_use_.size(); ++at)
      for (const auto& [used_at, first] : by_use_[at]) {
        if (best != nullptr && best->used_at < used_at) break;
        Tensor& tensor = tensors_.at(first);
        if (tensor.bytes < at_least || !may_leave(tensor.blocks)) continue;
        best = &tensor;
        break;
      }
    return best;
  };
  Tensor* victim = least_recent(class_of(needed), needed);
  if (victim == nullptr) victim = least_recent(0, {});
  if (victim == nullptr) return std::nullopt;
  put(*victim, false);
  return victim->blocks;
}

}  // namespace spillway
