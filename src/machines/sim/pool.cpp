#include "machines/sim/pool.h"

#include <algorithm>
#include <utility>

namespace spillway {

void Pool::place(TensorId tensor, Layout& layout) const {
  const std::uint64_t address = addresses_[tensor.value], bytes = (*trace_)[tensor].bytes.value;
  const auto first = static_cast<std::uint32_t>(address / kBlockBytes.value);
  const auto last = static_cast<std::uint32_t>((address + std::max<std::uint64_t>(bytes, 1) - 1) / kBlockBytes.value);
  layout.tensors[tensor.value] = {{first}, last - first + 1};
  layout.begins[tensor.value] = Bytes{address % kBlockBytes.value};
}

void Pool::allocate(TensorId tensor, Layout& layout) {
  addresses_[tensor.value] = allocator_.allocate((*trace_)[tensor].bytes);
  place(tensor, layout);
}

void Pool::carry(std::span<const std::optional<std::uint32_t>> heirs, Layout& layout) {
  const std::vector<std::uint64_t> before = addresses_;
  for (std::uint32_t from = 0; from < heirs.size(); ++from) {
    if (!heirs[from]) continue;
    addresses_[*heirs[from]] = before[from];
    place({*heirs[from]}, layout);
  }
}

void Pool::free(TensorId tensor) { allocator_.free(addresses_[tensor.value]); }

std::vector<TensorId> present_at_start(const Lifetimes& lifetimes) {
  std::vector<std::pair<std::uint32_t, TensorId>> present;
  for (std::uint32_t tensor = 0; tensor < lifetimes.tensors.size(); ++tensor)
    if (const Lifetime& life = lifetimes.tensors[tensor]; life.alive_at_start)
      present.emplace_back(life.uses.empty() ? UINT32_MAX : life.uses.front().value, TensorId{tensor});
  std::ranges::sort(present);
  std::vector<TensorId> tensors;
  for (const auto& [first_use, tensor] : present) tensors.push_back(tensor);
  return tensors;
}

std::vector<std::optional<std::uint32_t>> heirs_of(const Trace& trace) {
  std::vector<std::optional<std::uint32_t>> heirs(trace.tensors.size());
  for (std::uint32_t to = 0; to < trace.tensors.size(); ++to)
    if (const auto from = trace.tensors[to].carried_from; from && from->value != to) heirs[from->value] = to;
  return heirs;
}

Layout pooled_layout(const Trace& trace, const Lifetimes& lifetimes, std::uint32_t iterations) {
  Pool pool(trace);
  Layout layout, now;
  layout.tensors.resize(trace.tensors.size());
  layout.begins.resize(trace.tensors.size());
  now = layout;
  std::vector<bool> known(trace.tensors.size());
  const auto allocate = [&](TensorId tensor) {
    pool.allocate(tensor, now);
    if (known[tensor.value]) return;
    known[tensor.value] = true;
    layout.tensors[tensor.value] = now.tensors[tensor.value];
    layout.begins[tensor.value] = now.begins[tensor.value];
  };
  for (const TensorId tensor : present_at_start(lifetimes)) allocate(tensor);
  const auto heirs = heirs_of(trace);
  for (std::uint32_t iteration = 0; iteration < iterations; ++iteration) {
    if (iteration > 0) pool.carry(heirs, now);
    for (std::size_t kernel = 0; kernel < trace.kernels.size(); ++kernel) {
      for (const TensorId tensor : lifetimes.births[kernel]) allocate(tensor);
      for (const TensorId tensor : lifetimes.deaths[kernel]) pool.free(tensor);
    }
  }
  layout.block_bytes.assign(pool.reserved().value / kBlockBytes.value, kBlockBytes);
  return layout;
}

}  // namespace spillway
