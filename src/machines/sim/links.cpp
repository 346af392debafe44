#include "machines/sim/links.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/check.h"

namespace spillway {
namespace {

constexpr double kPerNano = 1e-9;
// What is below these is left over by rounding: no move is that small and no step that short.
constexpr double kNoBytes = 1e-3;
constexpr double kNoTime = 1e-6;

}  // namespace

Links::Way& Links::way(Tier from, Tier to) {
  for (Way& candidate : ways_)
    if (candidate.from == from && candidate.to == to) return candidate;
  CHECK(false && "there is a way between any two tiers");
}

void Links::start(const Move& move, Load load) {
  Job job{.move = move};
  job.bytes = static_cast<double>(load.bytes.value);
  job.limit = std::numeric_limits<double>::infinity();
  const Nanos latency = move.from == Tier::ssd ? rates_.ssd_read_latency
                        : move.to == Tier::ssd ? rates_.ssd_write_latency
                                               : rates_.host_latency;
  job.latency_ns = static_cast<double>(latency.value) * load.latencies;
  if (const double least = static_cast<double>(load.least.value) - job.latency_ns; least > 0)
    job.limit = job.bytes / least;
  way(move.from, move.to).queues[static_cast<std::size_t>(move.urgency)].push_back(job);
  ++under_way_;
  shared_ = false;
}

std::optional<Move> Links::cancel(MoveId move) {
  for (Way& candidate : ways_)
    for (std::deque<Job>& queue : candidate.queues) {
      const auto found = std::ranges::find(queue, move, [](const Job& job) { return job.move.id; });
      if (found == queue.end()) continue;
      const Move cancelled = found->move;
      queue.erase(found);
      --under_way_;
      shared_ = false;
      return cancelled;
    }
  return std::nullopt;
}

void Links::share() {
  if (shared_) return;
  shared_ = true;
  in_service_.clear();
  for (Way& candidate : ways_)
    for (std::deque<Job>& queue : candidate.queues)
      if (!queue.empty()) in_service_.push_back(&queue.front());
  std::array<double, kResources> left{rates_.to_device * kPerNano, rates_.from_device * kPerNano,
                                      rates_.ssd_read * kPerNano, rates_.ssd_write * kPerNano, 1};
  for (std::size_t urgency = 0; urgency < kUrgencies; ++urgency) {
    std::array<Flow, std::tuple_size_v<decltype(ways_)>> flows;
    std::size_t count = 0;
    for (Job* job : in_service_) {
      const Move& move = job->move;
      if (static_cast<std::size_t>(move.urgency) != urgency) continue;
      job->rate = 0;
      const bool reads = move.from == Tier::ssd, writes = move.to == Tier::ssd;
      if (!std::exchange(job->begun, true) && flash_time_ && (reads || writes))
        job->flash = flash_time_(move) / job->bytes;
      if (job->latency_ns > 0) continue;
      flows[count] = {job, {}};
      flows[count].uses[move.to == Tier::device ? into_device : out_of_device] = 1;
      if (reads || writes) flows[count].uses[reads ? ssd_reads : ssd_writes] = 1;
      flows[count++].uses[flash] = job->flash;
    }
    if (count > 0) fill(std::span(flows).first(count), left);
  }
}

// Raises all rates together until somebody meets a limit; whoever does is served, the others go on.
void Links::fill(std::span<Flow> flows, std::array<double, kResources>& left) {
  while (!flows.empty()) {
    std::array<double, kResources> share_of{};
    double raise = std::numeric_limits<double>::infinity();
    for (std::size_t resource = 0; resource < kResources; ++resource) {
      double used = 0;
      for (const Flow& flow : flows) used += flow.uses[resource];
      share_of[resource] = used > 0 ? left[resource] / used : raise;
      raise = std::min(raise, share_of[resource]);
    }
    for (const Flow& flow : flows) raise = std::min(raise, flow.job->limit - flow.job->rate);
    for (const Flow& flow : flows) {
      flow.job->rate += raise;
      for (std::size_t resource = 0; resource < kResources; ++resource)
        if (flow.uses[resource] > 0) left[resource] = std::max(0.0, left[resource] - raise * flow.uses[resource]);
    }
    const auto served = std::ranges::remove_if(flows, [&](const Flow& flow) {
      if (flow.job->limit <= flow.job->rate) return true;
      for (std::size_t resource = 0; resource < kResources; ++resource)
        if (flow.uses[resource] > 0 && share_of[resource] <= raise) return true;
      return false;
    });
    flows = flows.first(flows.size() - served.size());
  }
}

double Links::step_ns() {
  share();
  double step = std::numeric_limits<double>::infinity();
  for (const Job* job : in_service_) {
    if (job->latency_ns > 0)
      step = std::min(step, job->latency_ns);
    else if (job->rate > 0)
      step = std::min(step, job->bytes / job->rate);
  }
  return step;
}

std::optional<Nanos> Links::next_change() {
  const double step = step_ns();
  if (std::isinf(step)) return std::nullopt;
  return now_ + Nanos{std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(step - kNoTime)))};
}

void Links::advance(Nanos to, std::vector<Move>& ended) {
  CHECK(to >= now_);
  share();
  const double passed = static_cast<double>((to - now_).value);
  now_ = to;
  for (Job* job : in_service_) {
    if (job->latency_ns > 0) {
      job->latency_ns -= passed;
      if (job->latency_ns <= 0) shared_ = false;
      continue;
    }
    job->bytes -= job->rate * passed;
    if (job->bytes <= kNoBytes) ended.push_back(job->move);
  }
  under_way_ -= ended.size();
  for (const Move& move : ended) way(move.from, move.to).queues[static_cast<std::size_t>(move.urgency)].pop_front();
  shared_ &= ended.empty();
}

}  // namespace spillway
