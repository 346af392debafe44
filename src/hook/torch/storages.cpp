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
  spare_.put(by_address_, newborn.begin)->second = newborn;
  return newborn.id;
}

std::optional<Storages::Storage> Storages::remove(const void* memory) {
  const MutexLock lock(mutex_);
  const auto place = by_address_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (place == by_address_.end()) return std::nullopt;
  const Storage storage = place->second;
  if (const Storage*& found = found_at(storage.begin); found == &place->second) found = nullptr;
  spare_.erase(by_address_, place);
  families_.leave(storage.lineage);
  return storage;
}

// Tensors are mostly looked up by their start, again and again.
const Storages::Storage* Storages::find(std::uintptr_t address) {
  const Storage*& found = found_at(address);
  if (found != nullptr && found->begin == address) return found;
  auto place = by_address_.upper_bound(address);
  if (place == by_address_.begin()) return nullptr;
  --place;
  if (address - place->second.begin >= place->second.bytes) return nullptr;
  if (place->second.begin == address) found = &place->second;
  return &place->second;
}

std::vector<Storages::Storage> Storages::all() const {
  const MutexLock lock(mutex_);
  std::vector<Storage> result;
  result.reserve(by_address_.size());
  for (const auto& [begin, storage] : by_address_) result.push_back(storage);
  return result;
}

}  // namespace spillway
