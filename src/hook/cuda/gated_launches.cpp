#include "hook/cuda/gated_launches.h"

#include <utility>
#include <vector>

#include "base/check.h"

namespace spillway {
namespace {

// What this thread's launch touches, from before() to after(); and what its operator may.
thread_local std::vector<BlockTouch> touches_of_launch;
thread_local std::span<const BlockTouch> touches_of_operator;

constexpr std::uint64_t id_of(BlockRange blocks) { return std::uint64_t{blocks.first.value} << 32 | blocks.count; }
constexpr BlockRange blocks_of(std::uint64_t id) {
  return {{static_cast<std::uint32_t>(id >> 32)}, static_cast<std::uint32_t>(id)};
}

}  // namespace

CudaRange GatedLaunches::range_of(const void* begin, Bytes bytes) const {
  CHECK(machine_.contains(begin) && bytes > Bytes{});
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uint64_t offset = address - reinterpret_cast<std::uintptr_t>(machine_.begin());
  const auto first = static_cast<std::uint32_t>(offset / kBlockBytes.value);
  const auto last = static_cast<std::uint32_t>((offset + bytes.value - 1) / kBlockBytes.value);
  return {.begin = address, .bytes = bytes.value, .id = id_of({{first}, last - first + 1})};
}

bool GatedLaunches::before(const CudaLaunch& launch) noexcept {
  if (launch.is_captured) return true;  // The graph is gated when it is launched.
  touches_of_launch.clear();
  for (const CudaTouch& touch : launch.touches)
    touches_of_launch.push_back({blocks_of(touch.range), touch.access != CudaAccess::read});
  if (!launch.is_complete) {
    if (touches_of_operator.empty()) blind_launches_.fetch_add(1, std::memory_order_relaxed);
    touches_of_launch.insert(touches_of_launch.end(), touches_of_operator.begin(), touches_of_operator.end());
  }
  if (touches_of_launch.empty()) return true;
  const auto entered = machine_.gate().enter(launch.stream, touches_of_launch);
  if (entered) return true;
  const MutexLock lock(mutex_);
  refusal_ = entered.error().message;
  return false;
}

void GatedLaunches::after(const CudaLaunch& launch, int) noexcept {
  if (!launch.is_captured && !touches_of_launch.empty()) machine_.gate().leave(launch.stream, touches_of_launch);
}

void GatedLaunches::stream_ends(CUstream_st* stream) noexcept {
  if (const auto ended = machine_.gate().stream_ends(stream); !ended) {
    const MutexLock lock(mutex_);
    refusal_ = ended.error().message;
  }
}

GatedLaunches::Operator::Operator(std::span<const BlockTouch> touches)
    : before_(std::exchange(touches_of_operator, touches)) {}
GatedLaunches::Operator::~Operator() { touches_of_operator = before_; }

std::string GatedLaunches::refusal() const {
  const MutexLock lock(mutex_);
  return refusal_;
}

}  // namespace spillway
