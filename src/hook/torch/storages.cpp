#include "hook/torch/storages.h"

namespace spillway {

void Storages::name(Lineage& newborn) {
  const MutexLock lock(mutex_);
  families_.join(newborn);
}

void Storages::forget(const Lineage& unborn) {
  const MutexLock lock(mutex_);
  families_.leave(unborn);
}

StorageId Storages::add(Storage newborn) {
  const MutexLock lock(mutex_);
  newborn.id = {++last_};
  by_address_.insert_or_assign(newborn.begin, newborn);
  return newborn.id;
}

std::optional<Storages::Storage> Storages::remove(const void* memory) {
  const MutexLock lock(mutex_);
  const auto place = by_address_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (place == by_address_.end()) return std::nullopt;
  const Storage storage = place->second;
  by_address_.erase(place);
  families_.leave(storage.lineage);
  return storage;
}

std::optional<Storages::Storage> Storages::find(const void* address) const {
  const MutexLock lock(mutex_);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto place = by_address_.upper_bound(at);
  if (place == by_address_.begin()) return std::nullopt;
  --place;
  if (at - place->second.begin >= place->second.bytes) return std::nullopt;
  return place->second;
}

std::vector<Storages::Storage> Storages::all() const {
  const MutexLock lock(mutex_);
  std::vector<Storage> result;
  result.reserve(by_address_.size());
  for (const auto& [begin, storage] : by_address_) result.push_back(storage);
  return result;
}

}  // namespace spillway
