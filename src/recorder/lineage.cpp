#include "recorder/lineage.h"

#include "base/check.h"

namespace spillway {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

}  // namespace

KernelLineage::KernelLineage(std::string_view name) {
  generations_.fill(mixed(1, std::hash<std::string_view>{}(name)));
}

void KernelLineage::given(const Lineage& tensor) {
  given_nothing_ = false;
  for (std::size_t back = 0; back < kGenerations; ++back)
    generations_[back + 1] = mixed(generations_[back + 1], tensor.generations[back]);
}

Lineage KernelLineage::birth(std::size_t index) const {
  Lineage lineage;
  lineage.is_root = given_nothing_;
  for (std::size_t back = 0; back < kGenerations; ++back)
    lineage.generations[back] = mixed(generations_[back], index + 1);
  return lineage;
}

void Families::join(Lineage& newborn) {
  newborn.family = newborn.generations.back();
  Family& family = spare_families_.put(families_, newborn.family)->second;
  ++family.members;
  if (family.free.empty()) {
    newborn.place = family.end++;
  } else {
    newborn.place = family.free.top();
    family.free.pop();
  }
  if (newborn.is_root)
    for (std::uint64_t& generation : newborn.generations) generation = mixed(generation, newborn.place);
  newborn.label = {mixed(newborn.family, newborn.place + 1)};
}

void Families::leave(const Lineage& dead) {
  const auto family = families_.find(dead.family);
  CHECK(family != families_.end() && dead.place < family->second.end);
  if (--family->second.members == 0)
    spare_families_.erase(families_, family);
  else
    family->second.free.push(dead.place);
}

}  // namespace spillway
