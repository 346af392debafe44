#include "policies/below.h"

#include <algorithm>

namespace spillway {
namespace {

using Lane = Traffic::Lane;

// A prefetch starts with its kernel, after the gap before it, and may use the gap before the next one.
std::vector<std::uint64_t> prefetch_slots(const Trace& trace, std::span<const std::uint64_t> slots) {
  std::vector<std::uint64_t> result(slots.begin(), slots.end());
  for (std::size_t kernel = 0; kernel < result.size(); ++kernel) {
    result[kernel] -= trace.kernels[kernel].gap.value;
    result[kernel] += trace.kernels[(kernel + 1) % result.size()].gap.value;
  }
  return result;
}

// At most what a sum over all kernels can hold.
std::vector<std::uint64_t> bytes_per_slot(std::span<const std::uint64_t> slots, BytesPerSecond rate) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  const std::uint64_t most = kMost / slots.size();
  std::vector<std::uint64_t> result;
  for (const std::uint64_t slot : slots)
    result.push_back(static_cast<std::uint64_t>(
        std::min<unsigned __int128>(static_cast<unsigned __int128>(slot) * rate.value / 1'000'000'000u, most)));
  return result;
}

}  // namespace

std::vector<std::uint64_t> slots_of(const Trace& trace) {
  std::vector<std::uint64_t> slots;
  for (const Kernel& kernel : trace.kernels) slots.push_back((kernel.gap + kernel.duration).value);
  return slots;
}

Below::Below(const Problem& problem, const Circle& circle, std::span<const std::uint64_t> slots)
    : circle_(circle),
      machine_(problem.machine),
      host_(circle.empty(problem.machine.host.memory), slots),
      ssd_(circle.empty(problem.machine.ssd_capacity()), slots),
      out_(bytes_per_slot(slots, problem.machine.link.from_device), bytes_per_slot(slots, problem.machine.ssd_write())),
      in_(bytes_per_slot(prefetch_slots(problem.trace, slots), problem.machine.link.to_device),
          bytes_per_slot(prefetch_slots(problem.trace, slots), problem.machine.ssd_read())) {}

std::optional<Below::Window> Below::window(std::size_t period, Lane lane, bool idle, bool clean) const {
  const std::uint32_t length = circle_.length(period);
  const std::uint64_t bytes = circle_.bytes(period).value;
  const std::uint32_t first = circle_.stretch(period, 1, 1).begin;
  const auto out = clean ? 0u : out_.forward(lane, first, bytes, length - 1, idle);
  const bool returns = !circle_.period(period).last;
  const auto in = returns ? in_.backward(lane, circle_.period(period).before.value, bytes, length - 1, idle) : 0u;
  if (!out || !in || *out >= length - *in) return std::nullopt;
  return Window{.lane = lane, .clean = clean, .left = *out, .returns = length - *in};
}

bool Below::has_room(Tier tier, std::size_t period) const {
  return circle_.has_room(tier == Tier::host ? host_ : ssd_, circle_.stretch(period, 1, circle_.length(period)),
                          circle_.bytes(period));
}

std::optional<Below::Window> Below::place(std::size_t period, const Copies* copies, bool use_host) const {
  const bool ssd_has_room = has_room(Tier::ssd, period);
  if (copies != nullptr && copies->is_clean(period) && ssd_has_room)
    if (const auto clean = window(period, Lane::ssd, false, true)) return clean;
  auto ssd = ssd_has_room ? window(period, Lane::ssd, false) : std::nullopt;
  const auto idle = window(period, Lane::ssd, true);
  if (ssd && idle && ssd->left <= idle->left && ssd->returns >= idle->returns) return ssd;
  const bool only_ssd = copies != nullptr && copies->is_written_anyway(period);
  if (use_host && !only_ssd && has_room(Tier::host, period))
    if (const auto host = window(period, Lane::host, false)) return host;
  return ssd;
}

void Below::book(std::size_t period, const Window& window) {
  const Bytes bytes = circle_.bytes(period);
  if (!window.clean) out_.book_forward(window.lane, circle_.stretch(period, 1, 1).begin, bytes.value);
  if (!circle_.period(period).last) in_.book_backward(window.lane, circle_.period(period).before.value, bytes.value);
  circle_.add(window.tier() == Tier::host ? host_ : ssd_, circle_.stretch(period, 1, circle_.length(period)),
              static_cast<std::int64_t>(bytes.value));
}

std::vector<std::uint64_t> Below::with_waits(std::vector<std::uint64_t> slots, const Pressure& excess,
                                             bool use_host) const {
  const auto rate = [&](std::uint32_t kernel) {
    const bool host = use_host && host_.max(kernel, kernel + 1) < 0;
    return host ? machine_.link.from_device : std::min(machine_.link.from_device, machine_.ssd_write());
  };
  const auto over = [&](std::uint32_t kernel) { return std::max<std::int64_t>(0, excess.max(kernel, kernel + 1)); };
  std::uint64_t most = std::uint64_t{1} << 58;  // of all waits, so that their sums fit
  const std::uint32_t kernels = circle_.kernels();
  std::int64_t before = over(kernels - 1);
  for (std::uint32_t kernel = 0; kernel < kernels; ++kernel) {
    const std::int64_t now = over(kernel);
    if (now > before) {
      const Nanos wait = transfer_time(Bytes{static_cast<std::uint64_t>(now - before)}, rate(kernel));
      slots[(kernel + kernels - 1) % kernels] += std::min(wait.value, most);
      most -= std::min(wait.value, most);
    }
    before = now;
  }
  return slots;
}

}  // namespace spillway
