#include "hook/torch/foreign_memory.h"

#include <algorithm>

namespace spillway {

void ForeignMemory::used(const std::vector<c10::StorageImpl*>& storages) {
  for (c10::StorageImpl* storage : storages) {
    const void* data = storage->_mutable_data_ptr_no_checks().get();
    const auto known = known_.find(data);
    if (known != known_.end()) {
      if (known->second.storage._unsafe_get_target() == storage && known->second.bytes == storage->nbytes()) continue;
      bytes_ -= known->second.bytes;
      known_.erase(known);
    }
    known_.emplace(data, Known{c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage), storage->nbytes()});
    bytes_ += storage->nbytes();
  }
  if (Bytes{bytes_} <= peak_) return;
  forget_dead();
  peak_ = std::max(peak_, Bytes{bytes_});
}

void ForeignMemory::forget_dead() {
  std::erase_if(known_, [&](const auto& entry) {
    if (!entry.second.storage.expired()) return false;
    bytes_ -= entry.second.bytes;
    return true;
  });
}

}  // namespace spillway
