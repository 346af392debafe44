#include "machines/sim/links.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace spillway {
namespace {

constexpr double kPerNano = 1e-9;
// What is below these is left over by rounding: no move is that small and no step that short.
constexpr double kNoBytes = 1e-3;
constexpr double kNoTime = 1e-6;

}  // namespace

Links::Job* Links::Way::serving() {
  for (std::deque<Job>& queue : queues)
    if (!queue.empty()) return &queue.front();
  return nullptr;
}

Links::Way& Links::way(Tier from, Tier to) {
  for (Way& candidate : ways_)
    if (candidate.from == from && candidate.to == to) return candidate;
  CHECK(!"there is a way between any two tiers");
}

void Links::start(const Move& move, Bytes bytes) {
  Job job{.move = move};
  job.bytes = static_cast<double>(bytes.value);
  job.limit = std::numeric_limits<double>::infinity();
  const Nanos latency = move.from == Tier::ssd ? rates_.ssd_read_latency
                        : move.to == Tier::ssd ? rates_.ssd_write_latency
                                               : rates_.host_latency;
  const bool faults = move.urgency == Urgency::fault;
  if (faults || move.first_piece) job.latency_ns = static_cast<double>(latency.value) * (faults ? move.blocks.count : 1);
  if (faults && move.to == Tier::device && rates_.fault_cost > Nanos{}) {
    const std::uint64_t count = (bytes.value + rates_.fault_bytes.value - 1) / rates_.fault_bytes.value;
    job.limit = job.bytes / static_cast<double>((rates_.fault_cost * count).value);
  }
  way(move.from, move.to).queues[static_cast<std::size_t>(move.urgency)].push_back(job);
  shared_ = false;
}

std::optional<Move> Links::cancel(MoveId move) {
  for (Way& candidate : ways_)
    for (std::deque<Job>& queue : candidate.queues) {
      const auto found = std::ranges::find(queue, move, [](const Job& job) { return job.move.id; });
      if (found == queue.end()) continue;
      const Move cancelled = found->move;
      queue.erase(found);
      shared_ = false;
      return cancelled;
    }
  return std::nullopt;
}

void Links::share() {
  if (shared_) return;
  shared_ = true;
  enum Resource : std::uint8_t { into_device, out_of_device, ssd_reads, ssd_writes };
  std::array<double, 4> left{rates_.to_device * kPerNano, rates_.from_device * kPerNano, rates_.ssd_read * kPerNano,
                             rates_.ssd_write * kPerNano};
  struct Flow {
    Job* job;
    std::array<bool, 4> uses;
  };
  std::vector<Flow> open;
  for (Way& candidate : ways_)
    if (Job* job = candidate.serving(); job && job->latency_ns <= 0) {
      job->rate = 0;
      open.push_back({job,
                      {candidate.to == Tier::device, candidate.from == Tier::device, candidate.from == Tier::ssd,
                       candidate.to == Tier::ssd}});
    }
  while (!open.empty()) {  // Raise all rates together until somebody meets a limit; whoever does is served.
    std::array<double, 4> share_of{};
    double raise = std::numeric_limits<double>::infinity();
    for (std::size_t resource = 0; resource < 4; ++resource) {
      const auto users = std::ranges::count_if(open, [&](const Flow& flow) { return flow.uses[resource]; });
      share_of[resource] = users > 0 ? left[resource] / static_cast<double>(users) : raise;
      if (users > 0) raise = std::min(raise, share_of[resource]);
    }
    for (const Flow& flow : open) raise = std::min(raise, flow.job->limit - flow.job->rate);
    for (const Flow& flow : open) {
      flow.job->rate += raise;
      for (std::size_t resource = 0; resource < 4; ++resource)
        if (flow.uses[resource]) left[resource] -= raise;
    }
    std::erase_if(open, [&](const Flow& flow) {
      if (flow.job->limit <= flow.job->rate) return true;
      for (std::size_t resource = 0; resource < 4; ++resource)
        if (flow.uses[resource] && share_of[resource] <= raise) return true;
      return false;
    });
  }
}

double Links::step_ns() {
  share();
  double step = std::numeric_limits<double>::infinity();
  for (Way& candidate : ways_)
    if (const Job* job = candidate.serving())
      step = std::min(step, job->latency_ns > 0 ? job->latency_ns : job->bytes / job->rate);
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
  for (Way& candidate : ways_) {
    Job* job = candidate.serving();
    if (!job) continue;
    if (job->latency_ns > 0) {
      job->latency_ns -= passed;
      if (job->latency_ns <= 0) shared_ = false;
      continue;
    }
    job->bytes -= job->rate * passed;
    if (job->bytes > kNoBytes) continue;
    ended.push_back(job->move);
    candidate.queues[static_cast<std::size_t>(job->move.urgency)].pop_front();
    shared_ = false;
  }
}

}  // namespace spillway
