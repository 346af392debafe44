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
      host_(circle.empty(problem.machine.host_memory()), slots),
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

std::optional<Below::Window> Below::place_stored(std::size_t before, std::size_t period, Tier tier,
                                                 const Copies& copies) const {
  if (!has_room(tier, period, &copies)) return std::nullopt;
  const bool is_held_between = tier == Tier::host && !copies.held_with(before).after;
  if (is_held_between && !circle_.has_room(host_, circle_.from_end_to_end(before, period), circle_.bytes(period)))
    return std::nullopt;
  return window(period, tier == Tier::host ? Lane::host : Lane::ssd, false, true);
}

// Host memory is small, so that room for its copies is planned; copies on the SSD go where room is short.
Stretch Below::takes_room(Tier tier, std::size_t period, const Copies* copies) const {
  const Stretch away = circle_.stretch(period, 1, circle_.length(period));
  if (copies == nullptr || tier != Tier::host || machine_.host.keeps_copies == 0) return away;
  const Copies::Held held = copies->held_with(period);
  if (held.is_held) return {};
  if (held.always) return {.begin = 0, .count = circle_.kernels()};
  if (held.before) return circle_.from_end_to_end(*held.before, period);
  if (held.after) return circle_.from_begin_to_begin(period, *held.after);
  return away;
}

bool Below::has_room(Tier tier, std::size_t period, const Copies* copies) const {
  return circle_.has_room(tier == Tier::host ? host_ : ssd_, takes_room(tier, period, copies), circle_.bytes(period));
}

std::optional<Below::Window> Below::place(std::size_t period, const Copies* copies, bool use_host) const {
  const auto only = copies != nullptr ? copies->only_tier(period) : std::nullopt;
  const bool ssd_may = only.value_or(Tier::ssd) == Tier::ssd && has_room(Tier::ssd, period, copies);
  const bool host_may = use_host && only.value_or(Tier::host) == Tier::host && has_room(Tier::host, period, copies);
  const auto is_clean = [&](Tier tier) { return copies != nullptr && copies->is_clean(period, tier); };
  if (ssd_may && is_clean(Tier::ssd))
    if (const auto clean = window(period, Lane::ssd, false, true)) return clean;
  if (host_may && is_clean(Tier::host))
    if (const auto clean = window(period, Lane::host, false, true)) return clean;
  const auto ssd = ssd_may ? window(period, Lane::ssd, false) : std::nullopt;
  const auto idle = window(period, Lane::ssd, true);
  if (ssd && idle && ssd->left <= idle->left && ssd->returns >= idle->returns) return ssd;
  if (host_may)
    if (const auto host = window(period, Lane::host, false)) return host;
  return ssd;
}

void Below::book(std::size_t period, const Window& window, const Copies* copies) {
  const Bytes bytes = circle_.bytes(period);
  if (!window.clean) out_.book_forward(window.lane, circle_.stretch(period, 1, 1).begin, bytes.value);
  if (!circle_.period(period).last) in_.book_backward(window.lane, circle_.period(period).before.value, bytes.value);
  circle_.add(window.tier() == Tier::host ? host_ : ssd_, takes_room(window.tier(), period, copies),
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
