#include "hook/torch/foreign_memory.h"

#include <algorithm>
#include <utility>

namespace spillway {
void ForeignMemory::used(const std::vector<c10::StorageImpl*>& storages, Remains& remains) {
  for (c10::StorageImpl* storage : storages) {
    const void* data = storage->_mutable_data_ptr_no_checks().get();
    const auto known = known_.find(data);
    if (known != known_.end()) {
      if (known->second.storage._unsafe_get_target() == storage && known->second.bytes == storage->nbytes()) continue;
      bytes_ -= known->second.bytes;
      remains.push_back(std::move(known->second.storage));
      known_.erase(known);
    }
    known_.emplace(data, Known{c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage), storage->nbytes()});
    bytes_ += storage->nbytes();
  }
  const std::uint64_t believed = known_.size() > kFew ? peak_.value + peak_.value / 16 : peak_.value;
  if (bytes_ <= believed && known_.size() <= most_known_) return;
  forget_dead(remains);
  most_known_ = std::max(kFew, 2 * known_.size());
  peak_ = std::max(peak_, Bytes{bytes_});
}

void ForeignMemory::forget_dead(Remains& remains) {
  std::erase_if(known_, [&](auto& entry) {
    if (!entry.second.storage.expired()) return false;
    bytes_ -= entry.second.bytes;
    remains.push_back(std::move(entry.second.storage));
    return true;
  });
}

}  // namespace spillway
