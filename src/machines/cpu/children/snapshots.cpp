#include "machines/cpu/children/snapshots.h"

#include <algorithm>

#include "base/check.h"

namespace spillway {

SnapshotId Snapshots::take() {
  ++last_.value;
  CHECK(holders_.emplace(last_, 1).second);
  return last_;
}

std::vector<std::uint32_t> Snapshots::drop(SnapshotId snapshot) {
  std::vector<std::uint32_t> unread;
  const auto holder = holders_.find(snapshot);
  CHECK(holder != holders_.end());
  if (--holder->second > 0) return unread;
  holders_.erase(holder);
  for (auto block = versions_.begin(); block != versions_.end();) {
    std::erase_if(block->second, [&](const Version& version) {
      const auto reader = holders_.upper_bound(version.after);
      if (reader != holders_.end() && reader->first <= version.last) return false;
      if (version.view.where == View::Where::slot) unread.push_back(version.view.slot);
      return true;
    });
    block = block->second.empty() ? versions_.erase(block) : std::next(block);
  }
  return unread;
}

void Snapshots::settle(BlockId block, View view) {
  CHECK(wants(block));
  std::vector<Version>& versions = versions_[block];
  CHECK(versions.empty() || versions.back().last <= known_[block.value]);
  versions.push_back({known_[block.value], newest(), view});
  known_[block.value] = newest();
}

void Snapshots::lose(BlockId block, std::uint32_t slot) {
  std::vector<Version>& versions = versions_.at(block);
  const auto kept = std::ranges::find_if(
      versions, [&](const Version& each) { return each.view.where == View::Where::slot && each.view.slot == slot; });
  CHECK(kept != versions.end());
  kept->view = {View::Where::lost};
}

Snapshots::View Snapshots::find(SnapshotId snapshot, BlockId block) const {
  CHECK(holders_.contains(snapshot) && block.value < known_.size());
  if (snapshot > known_[block.value]) return {View::Where::block};
  const auto found = versions_.find(block);
  if (found == versions_.end()) return {View::Where::nowhere};
  const auto version = std::ranges::find_if(
      found->second, [&](const Version& each) { return each.after < snapshot && snapshot <= each.last; });
  return version == found->second.end() ? View{View::Where::nowhere} : version->view;
}

}  // namespace spillway
