#include "hook/cuda/gated_launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"

namespace spillway {
namespace {

// What this thread's launch touches, from before() to after(); and what its operator may.
thread_local std::vector<BlockTouch> touches_of_launch;
thread_local bool has_entered = false;
thread_local std::string_view name_of_operator;
struct OperatorTouch {
  const void* begin;
  BlockTouch touch;
};
thread_local std::vector<OperatorTouch> touches_of_operator;

constexpr std::uint64_t id_of(BlockRange blocks) { return std::uint64_t{blocks.first.value} << 32 | blocks.count; }
constexpr BlockRange blocks_of(std::uint64_t id) {
  return {{static_cast<std::uint32_t>(id >> 32)}, static_cast<std::uint32_t>(id)};
}

// Tensors share blocks, and an operator may be given one twice.
std::uint64_t distinct_blocks(std::vector<BlockTouch> touches) {
  std::ranges::sort(touches, {}, [](const BlockTouch& one) { return one.blocks.first; });
  std::uint64_t count = 0;
  std::uint32_t end = 0;
  for (const BlockTouch& one : touches) {
    const std::uint32_t first = std::max(end, one.blocks.first.value);
    end = std::max(end, one.blocks.end().value);
    count += end - first;
  }
  return count;
}

}  // namespace

BlockRange GatedLaunches::blocks_at(const void* begin, Bytes bytes) const {
  CHECK(machine_.contains(begin) && bytes > Bytes{});
  const std::uint64_t offset =
      reinterpret_cast<std::uintptr_t>(begin) - reinterpret_cast<std::uintptr_t>(machine_.begin());
  const auto first = static_cast<std::uint32_t>(offset / machine_.block_bytes().value);
  const auto last = static_cast<std::uint32_t>((offset + bytes.value - 1) / machine_.block_bytes().value);
  return {{first}, last - first + 1};
}

CudaRange GatedLaunches::range_of(const void* begin, Bytes bytes) const {
  return {.begin = reinterpret_cast<std::uintptr_t>(begin), .bytes = bytes.value, .id = id_of(blocks_at(begin, bytes))};
}

bool GatedLaunches::before(const CudaLaunch& launch) noexcept {
  touches_of_launch.clear();
  has_entered = false;
  if (launch.is_captured) return true;  // The graph is gated when it is launched.
  if (!enter(launch)) return false;
  // What touches nothing of ours may be another GPU's.
  if (timer_ != nullptr && !touches_of_launch.empty()) timer_->launches(launch.stream);
  return true;
}

bool GatedLaunches::enter(const CudaLaunch& launch) {
  for (const CudaTouch& touch : launch.touches)
    touches_of_launch.push_back({blocks_of(touch.range), touch.access != CudaAccess::read});
  if (!launch.is_complete && touches_of_operator.empty()) blind_launches_.fetch_add(1, std::memory_order_relaxed);
  add_touches_of_operator(launch.is_complete);
  if (touches_of_launch.empty() && !machine_.gate().is_strict()) return true;
  // It is another stream for each thread, and the run loop could not wait for any of them.
  if (launch.stream == CU_STREAM_PER_THREAD && !touches_of_launch.empty()) {
    refuse({Errc::unavailable,
            "a kernel was launched on the per-thread default stream, which is not supported; the launch has failed"});
    return false;
  }
  const auto entered = machine_.gate().enter(launch.stream, touches_of_launch);
  if (!entered)
    refuse({entered.error().code, fmt::format("{} was not launched: {}", name_of(launch), entered.error().message)});
  return has_entered = entered.has_value();
}

// What is reached by addresses that stand in device memory is not seen (batched and grouped products). Such operators
// have few arguments. Where there are many they come in lists, and kernels are given the addresses of each; together
// they may be more than the device.
void GatedLaunches::add_touches_of_operator(bool only_few) const {
  constexpr std::size_t kFew = 16;
  if (only_few && touches_of_operator.size() > kFew) return;
  const std::size_t seen = touches_of_launch.size();
  const auto is_seen = [&](const BlockTouch& wanted) {
    return std::ranges::any_of(std::span(touches_of_launch).first(seen), [&](const BlockTouch& one) {
      return one.blocks.first <= wanted.blocks.first && wanted.blocks.end() <= one.blocks.end() &&
             (one.writes || !wanted.writes);
    });
  };
  for (const OperatorTouch& one : touches_of_operator)
    if (!is_seen(one.touch)) touches_of_launch.push_back(one.touch);
  std::uint64_t blocks = 0;
  for (const BlockTouch& one : touches_of_launch) blocks += one.blocks.count;
  if (!only_few || blocks <= machine_.device_blocks()) return;
  touches_of_launch.resize(seen);
  for (const OperatorTouch& one : touches_of_operator) {  // As many as the device holds.
    if (is_seen(one.touch)) continue;
    touches_of_launch.push_back(one.touch);
    if (distinct_blocks(touches_of_launch) > machine_.device_blocks()) touches_of_launch.pop_back();
  }
}

void GatedLaunches::after(const CudaLaunch& launch, int) noexcept {
  if (!std::exchange(has_entered, false)) return;
  machine_.gate().leave(launch.stream, touches_of_launch, [&](const Error& miss) {
    refuse({miss.code, fmt::format("{} has touched memory of tensors that it was not seen to use, or failed "
                                   "otherwise: {}",
                                   name_of(launch), miss.message)});
  });
}

// "the kernel at_foo of aten::add". Names of templates may be longer than a notice.
std::string GatedLaunches::name_of(const CudaLaunch& launch) const {
  std::string name = launch.kind == CudaLaunch::Kind::copy    ? "a copy"
                     : launch.kind == CudaLaunch::Kind::set   ? "a set"
                     : launch.kind == CudaLaunch::Kind::graph ? "a CUDA graph"
                                                              : "a kernel";
  const char* function = nullptr;
  const CudaDriver& driver = machine_.driver();
  if (launch.function != nullptr &&
      (driver.cuFuncGetName(&function, launch.function) == CUDA_SUCCESS ||
       driver.cuKernelGetName(&function, reinterpret_cast<CUkernel>(launch.function)) == CUDA_SUCCESS))
    name = fmt::format("the kernel {}", std::string_view(function).substr(0, 200));
  return name_of_operator.empty() ? name : fmt::format("{} of {}", name, name_of_operator);
}

void GatedLaunches::stream_ends(CUstream_st* stream) noexcept {
  if (const auto ended = machine_.gate().streams().ends(stream); !ended) refuse(ended.error());
}

void GatedLaunches::stream_waits(CUstream_st* stream) noexcept { machine_.gate().streams().waits(stream); }

void GatedLaunches::operator_begins(std::string_view name) { name_of_operator = name; }

void GatedLaunches::operator_touches(const void* begin, Bytes bytes, bool writes) {
  touches_of_operator.push_back({begin, {blocks_at(begin, bytes), writes}});
}

void GatedLaunches::operator_forgets(const void* begin, Bytes bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  std::erase_if(touches_of_operator, [&](const OperatorTouch& one) {
    return reinterpret_cast<std::uintptr_t>(one.begin) - first < bytes.value;
  });
}

void GatedLaunches::operator_ends() {
  touches_of_operator.clear();
  name_of_operator = {};
}

void GatedLaunches::refuse(const Error& why) {
  if (on_refusal_) on_refusal_(why.message);
}

}  // namespace spillway
