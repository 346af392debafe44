#include "import/allocations.h"

#include <algorithm>
#include <utility>

namespace spillway {

Allocations::Allocations(std::vector<KinetoMemory> events, std::uint64_t multiple)
    : multiple_(multiple), events_(std::move(events)), freed_(events_.size()) {
  std::ranges::stable_sort(events_, {}, &KinetoMemory::at);
  std::unordered_map<std::uint64_t, std::size_t> held;  // by address
  for (std::size_t e = 0; e < events_.size(); ++e) {
    if (events_[e].bytes > 0) {
      held[events_[e].address] = e;
      unclaimed_[given_for(static_cast<std::uint64_t>(events_[e].bytes))].insert(e);
    } else if (const auto place = held.find(events_[e].address); place != held.end()) {
      freed_[place->second] = events_[e].at;
      held.erase(place);
    }
  }
}

std::optional<Allocations::Claim> Allocations::claim(Bytes bytes, KinetoSpan during) {
  const auto fitting = unclaimed_.find(given_for(bytes.value));
  if (fitting == unclaimed_.end()) return std::nullopt;
  const auto begin = std::ranges::lower_bound(events_, during.begin, {}, &KinetoMemory::at) - events_.begin();
  const auto found = fitting->second.lower_bound(static_cast<std::size_t>(begin));
  if (found == fitting->second.end() || events_[*found].at > during.end) return std::nullopt;
  const std::size_t event = *found;
  fitting->second.erase(found);
  return Claim{.given = events_[event], .freed = freed_[event]};
}

std::uint64_t Allocations::given_for(std::uint64_t bytes) const {
  return (bytes + multiple_ - 1) / multiple_ * multiple_;
}

}  // namespace spillway
