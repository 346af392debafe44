#include "machines/cuda/launch_check.h"

#include <algorithm>
#include <vector>

#include "machines/cuda/driver_scope.h"

namespace spillway {

Result<> LaunchCheck::begin(std::span<const BlockRange> touched) {
  std::vector<BlockId> blocks;
  for (const BlockRange& range : touched)
    for (BlockId block = range.first; block < range.end(); ++block.value) blocks.push_back(block);
  std::ranges::sort(blocks);
  const auto [first, last] = std::ranges::unique(blocks);
  blocks.erase(first, last);
  mutex_.lock();
  const DriverScope scope(around_.driver, around_.context);
  // Nothing else is on its way: launches have been awaited.
  Result<> ready = around_.up.wait();
  if (ready) ready = around_.down.wait();
  if (ready) ready = around_.memory.allow_only(blocks);
  if (!ready) mutex_.unlock();
  return ready;
}

void LaunchCheck::end(CUstream stream, const OnMiss& on_miss) {
  const DriverScope scope(around_.driver, around_.context);
  const auto ran = around_.driver.check(around_.driver.cuStreamSynchronize(stream), "run it");
  checked_.fetch_add(1, std::memory_order_relaxed);
  if (!ran && on_miss) on_miss(ran.error());
  mutex_.unlock();
}

}  // namespace spillway
