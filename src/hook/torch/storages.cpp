#include "hook/torch/storages.h"

namespace spillway {

void Storages::name(Lineage& newborn) {
  const std::scoped_lock lock(mutex_);
  families_.join(newborn);
}

void Storages::forget(const Lineage& unborn) {
  const std::scoped_lock lock(mutex_);
  families_.leave(unborn);
}

StorageId Storages::add(const void* memory, std::size_t bytes, const Lineage& lineage) {
  const std::scoped_lock lock(mutex_);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const StorageId id{++last_};
  by_address_.insert_or_assign(begin, Storage{.id = id, .begin = begin, .bytes = bytes, .lineage = lineage});
  return id;
}

std::optional<Storages::Storage> Storages::remove(const void* memory) {
  const std::scoped_lock lock(mutex_);
  const auto place = by_address_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (place == by_address_.end()) return std::nullopt;
  const Storage storage = place->second;
  by_address_.erase(place);
  families_.leave(storage.lineage);
  return storage;
}

std::optional<Storages::Storage> Storages::find(const void* address) const {
  const std::scoped_lock lock(mutex_);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto place = by_address_.upper_bound(at);
  if (place == by_address_.begin()) return std::nullopt;
  --place;
  if (at - place->second.begin >= place->second.bytes) return std::nullopt;
  return place->second;
}

std::unordered_map<StorageId, std::uintptr_t> Storages::all() const {
  const std::scoped_lock lock(mutex_);
  std::unordered_map<StorageId, std::uintptr_t> result;
  for (const auto& [begin, storage] : by_address_) result.emplace(storage.id, begin);
  return result;
}

}  // namespace spillway
