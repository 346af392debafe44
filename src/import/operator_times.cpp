#include "import/operator_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "trace/validate.h"

namespace spillway {
namespace {

constexpr std::int64_t kMostBusy{kMostIterationTime.value};

using ById = std::unordered_map<std::uint64_t, const KinetoOperator*>;

template <class One>
using Threads = std::vector<std::vector<std::pair<std::uint64_t, const One*>>>;

// What each thread does, in order; the threads in the order in which they begin.
template <class One, class Number, class Thread>
Threads<One> by_thread(const std::vector<One>& all, Number number, Thread thread) {
  std::map<std::int64_t, typename Threads<One>::value_type> threads;
  for (const One& one : all)
    if (number(one) > 0) threads[static_cast<std::int64_t>(thread(one))].emplace_back(number(one), &one);
  Threads<One> ordered;
  for (auto& [id, ones] : threads) {
    std::ranges::sort(ones);
    ordered.push_back(std::move(ones));
  }
  std::ranges::sort(ordered);
  return ordered;
}

// Older profilers number operators otherwise than the observer does, each thread in blocks of its own. The n-th of a
// thread is the same in both.
ById in_order(const std::vector<EtNode>& nodes, const Kineto& kineto) {
  const auto here =
      by_thread(nodes, [](const EtNode& one) { return one.function; }, [](const EtNode& one) { return one.thread; });
  const auto there = by_thread(
      kineto.operators, [](const KinetoOperator& one) { return one.id; },
      [](const KinetoOperator& one) { return one.thread; });
  ById by_id;
  for (std::size_t t = 0; t < std::min(here.size(), there.size()); ++t)
    for (std::size_t n = 0; n < std::min(here[t].size(), there[t].size()); ++n)
      by_id.emplace(here[t][n].first, there[t][n].second);
  return by_id;
}

// Gives each kernel on the GPU to the operator in which it was launched.
void add_kernels(std::vector<std::optional<OperatorTime>>& times, const Kineto& kineto) {
  std::map<std::int64_t, std::vector<OperatorTime*>> threads;
  for (auto& time : times)
    if (time) threads[time->thread].push_back(&*time);
  for (auto& [thread, here] : threads)
    std::ranges::sort(here, {}, [](const OperatorTime* time) { return time->host.begin; });
  std::unordered_map<std::uint64_t, OperatorTime*> launched_by;
  for (const KinetoLaunch& launch : kineto.launches) {
    const auto here = threads.find(launch.thread);
    if (here == threads.end()) continue;
    auto after = std::ranges::upper_bound(here->second, launch.at, {},
                                          [](const OperatorTime* time) { return time->host.begin; });
    if (after == here->second.begin() || (*std::prev(after))->host.end < launch.at) continue;
    launched_by.emplace(launch.correlation, *std::prev(after));
  }
  for (const KinetoKernel& kernel : kineto.kernels) {
    const auto found = launched_by.find(kernel.correlation);
    if (found == launched_by.end()) continue;
    OperatorTime& time = *found->second;
    if (!time.gpu) time.gpu = kernel.time;
    time.gpu = {.begin = std::min(time.gpu->begin, kernel.time.begin), .end = std::max(time.gpu->end, kernel.time.end)};
    time.busy = std::min(time.busy + (kernel.time.end - kernel.time.begin), kMostBusy);
  }
}

}  // namespace

Result<std::vector<std::optional<OperatorTime>>> times_of(const std::vector<EtNode>& nodes,
                                                          const std::vector<std::size_t>& wanted, const Kineto& kineto,
                                                          const std::string& where) {
  ById by_function;
  for (const KinetoOperator& one : kineto.operators)
    if (one.function) by_function.emplace(*one.function, &one);
  if (by_function.empty()) by_function = in_order(nodes, kineto);
  std::vector<std::optional<OperatorTime>> times(wanted.size());
  bool some = false;
  for (std::size_t w = 0; w < wanted.size(); ++w) {
    const EtNode& node = nodes[wanted[w]];
    const auto found = by_function.find(node.function);
    if (found == by_function.end()) continue;
    if (found->second->name != node.name)
      return fail(
          Errc::bad_input,
          fmt::format("cannot import {}: node {} is '{}', and in the profile '{}'; name the two files of one run",
                      where, node.id, node.name, found->second->name));
    times[w] = OperatorTime{.thread = found->second->thread, .host = found->second->time};
    some = true;
  }
  if (!some)
    return fail(Errc::bad_input, fmt::format("cannot import {}: the profile has no operator of it; name the two files "
                                             "of one run",
                                             where));
  add_kernels(times, kineto);
  return times;
}

}  // namespace spillway
