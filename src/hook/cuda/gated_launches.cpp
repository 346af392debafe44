#include "hook/cuda/gated_launches.h"

#include <vector>

#include "base/check.h"

namespace spillway {
namespace {

// What this thread's launch touches, from before() to after(); and what its operator may.
thread_local std::vector<BlockTouch> touches_of_launch;
struct OperatorTouch {
  const void* begin;
  BlockTouch touch;
};
thread_local std::vector<OperatorTouch> touches_of_operator;

constexpr std::uint64_t id_of(BlockRange blocks) { return std::uint64_t{blocks.first.value} << 32 | blocks.count; }
constexpr BlockRange blocks_of(std::uint64_t id) {
  return {{static_cast<std::uint32_t>(id >> 32)}, static_cast<std::uint32_t>(id)};
}

}  // namespace

BlockRange GatedLaunches::blocks_at(const void* begin, Bytes bytes) const {
  CHECK(machine_.contains(begin) && bytes > Bytes{});
  const std::uint64_t offset =
      reinterpret_cast<std::uintptr_t>(begin) - reinterpret_cast<std::uintptr_t>(machine_.begin());
  const auto first = static_cast<std::uint32_t>(offset / kBlockBytes.value);
  const auto last = static_cast<std::uint32_t>((offset + bytes.value - 1) / kBlockBytes.value);
  return {{first}, last - first + 1};
}

CudaRange GatedLaunches::range_of(const void* begin, Bytes bytes) const {
  return {.begin = reinterpret_cast<std::uintptr_t>(begin), .bytes = bytes.value, .id = id_of(blocks_at(begin, bytes))};
}

bool GatedLaunches::before(const CudaLaunch& launch) noexcept {
  touches_of_launch.clear();
  if (launch.is_captured) return true;  // The graph is gated when it is launched.
  if (!enter(launch)) return false;
  // What touches nothing of ours may be another GPU's.
  if (timer_ != nullptr && !touches_of_launch.empty()) timer_->launches(launch.stream);
  return true;
}

bool GatedLaunches::enter(const CudaLaunch& launch) {
  for (const CudaTouch& touch : launch.touches)
    touches_of_launch.push_back({blocks_of(touch.range), touch.access != CudaAccess::read});
  if (!launch.is_complete) {
    if (touches_of_operator.empty()) blind_launches_.fetch_add(1, std::memory_order_relaxed);
    for (const OperatorTouch& one : touches_of_operator) touches_of_launch.push_back(one.touch);
  }
  if (touches_of_launch.empty()) return true;
  // It is another stream for each thread, and the run loop could not wait for any of them.
  if (launch.stream == CU_STREAM_PER_THREAD) {
    refuse({Errc::unavailable,
            "a kernel was launched on the per-thread default stream, which is not supported; the launch has failed"});
    return false;
  }
  const auto entered = machine_.gate().enter(launch.stream, touches_of_launch);
  if (!entered) refuse(entered.error());
  return entered.has_value();
}

void GatedLaunches::after(const CudaLaunch& launch, int) noexcept {
  if (!touches_of_launch.empty()) machine_.gate().leave(launch.stream, touches_of_launch);
}

void GatedLaunches::stream_ends(CUstream_st* stream) noexcept {
  if (const auto ended = machine_.gate().streams().ends(stream); !ended) refuse(ended.error());
}

void GatedLaunches::operator_touches(const void* begin, Bytes bytes, bool writes) {
  touches_of_operator.push_back({begin, {blocks_at(begin, bytes), writes}});
}

void GatedLaunches::operator_forgets(const void* begin) {
  std::erase_if(touches_of_operator, [&](const OperatorTouch& one) { return one.begin == begin; });
}

void GatedLaunches::operator_ends() { touches_of_operator.clear(); }

void GatedLaunches::refuse(const Error& why) {
  if (on_refusal_) on_refusal_(why.message);
}

}  // namespace spillway
