// What planning and simulating cost: bench/simulate [--growth] TRACE...
//
// With --growth: seconds to plan and simulate once, for the trace 1, 2, 4, ... times over, until it has 40,000 kernels;
// and the exponent of the growth. A policy that takes more than a minute goes no further.
// Without, for each trace and policy, and again for the trace twice over as one iteration: kernels, moves, wall time of
// the plan (the best of nine) and of the simulation (the best of three), peak memory of a process that does nothing
// else, and the ratio of the doubled trace's times to the plain one's ("-" where tensors are carried into the next
// iteration, which cannot be doubled).

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/lifetimes.h"
#include "base/check.h"
#include "machines/sim/simulate.h"
#include "plan/machine_file.h"
#include "policies/policies.h"
#include "report/table.h"
#include "trace/format.h"
#include "trace/g10.h"

namespace spillway {
namespace {

using Clock = std::chrono::steady_clock;

struct Cost {
  double planning = 0, simulating = 0;  // seconds
  std::uint64_t moves = 0;
  std::uint64_t peak_bytes = 0;
  std::uint32_t iterations = 0;  // until two are alike, at most 20
  bool feasible = false;
};

// Seconds of the fastest: what else the machine does only adds.
double best_of(int rounds, auto&& work) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = Clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

// Two iterations as one: the second has its own tensors, but for those that persist.
Trace doubled(const Trace& trace) {
  Trace twice = trace;
  std::vector<TensorId> second(trace.tensors.size());
  for (std::uint32_t id = 0; id < trace.tensors.size(); ++id) {
    second[id] = {id};
    if (trace.tensors[id].persistent) continue;
    second[id] = {static_cast<std::uint32_t>(twice.tensors.size())};
    twice.tensors.push_back(trace.tensors[id]);
  }
  for (Kernel kernel : trace.kernels) {
    for (Access& access : kernel.reads) access.tensor = second[access.tensor.value];
    for (Access& access : kernel.writes) access.tensor = second[access.tensor.value];
    for (TensorId& freed : kernel.frees) freed = second[freed.value];
    twice.kernels.push_back(std::move(kernel));
  }
  return twice;
}

Cost measure(const Trace& trace, const Policy& policy, const MachineModel& machine) {
  Cost cost;
  const Lifetimes lifetimes = analyse_lifetimes(trace);
  Plan plan;
  cost.planning = best_of(9, [&] {
    if (policy.plan) plan = policy.plan({trace, lifetimes, machine, policy.traits.parameters});
  });
  cost.simulating = best_of(3, [&] {
    const auto result = simulate(trace, lifetimes, machine, policy.traits, policy.plan ? &plan : nullptr);
    CHECK(result.has_value());
    cost.feasible = result->feasible;
    cost.iterations = result->iterations;
  });
  cost.moves = plan.moves();
  return cost;
}

// In a process of its own, whose peak memory the system counts.
Cost measure_apart(const Trace& trace, const Policy& policy, const MachineModel& machine) {
  int ends[2];
  CHECK(::pipe(ends) == 0);
  const pid_t child = ::fork();
  CHECK(child >= 0);
  if (child == 0) {
    const Cost cost = measure(trace, policy, machine);
    const bool written = ::write(ends[1], &cost, sizeof cost) == sizeof cost;
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);  // or a child that fails would leave us reading
  Cost cost;
  CHECK(::read(ends[0], &cost, sizeof cost) == sizeof cost);
  int status = 0;
  struct rusage usage{};
  CHECK(::wait4(child, &status, 0, &usage) == child && status == 0);
  ::close(ends[0]);
  ::close(ends[1]);
  cost.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  return cost;
}

Result<Trace> trace_at(const std::string& path) {
  if (std::filesystem::is_directory(path)) return import_g10(path);
  TRY(LoadedTrace loaded, load_trace(path));
  return std::move(loaded.trace);
}

double seconds_once(const Trace& trace, const Policy& policy, const MachineModel& machine) {
  return best_of(1, [&] {
    const Lifetimes lifetimes = analyse_lifetimes(trace);
    Plan plan;
    if (policy.plan) plan = policy.plan({trace, lifetimes, machine, policy.traits.parameters});
    CHECK(simulate(trace, lifetimes, machine, policy.traits, policy.plan ? &plan : nullptr).has_value());
  });
}

int show_growth(const std::vector<std::string>& paths, const MachineModel& machine) {
  constexpr std::size_t kEnough = 40'000;
  constexpr double kPatience = 60;
  for (const std::string& path : paths) {
    auto trace = trace_at(path);
    if (!trace) {
      fmt::print(stderr, "bench/simulate: {}\n", trace.error().message);
      return 1;
    }
    std::vector<Trace> traces{*std::move(trace)};
    while (traces.back().kernels.size() < kEnough) traces.push_back(doubled(traces.back()));
    std::vector<Table::Column> columns{{traces.front().name, Align::left}};
    for (const Trace& one : traces) columns.push_back({fmt::format("{} kernels", one.kernels.size())});
    columns.push_back({"grows like"});
    Table table(columns);
    for (const Policy& policy : kPolicies) {
      std::vector<std::string> row{std::string(policy.name)};
      double first = 0, last = 0, times = 1;
      for (const Trace& one : traces) {
        if (last > kPatience) break;
        last = seconds_once(one, policy, machine);
        if (row.size() == 1) first = last;
        times = static_cast<double>(one.kernels.size()) / static_cast<double>(traces.front().kernels.size());
        row.push_back(fmt::format("{:.3f} s", last));
      }
      row.resize(columns.size() - 1, "-");
      row.push_back(times > 1 ? fmt::format("n^{:.2f}", std::log(last / first) / std::log(times)) : "-");
      table.add_row(row);
      fmt::print(stderr, "{} {}\n", traces.front().name, policy.name);
    }
    fmt::print("{}\n", table.text());
  }
  return 0;
}

int run(const std::vector<std::string>& paths, const MachineModel& machine) {
  Table table({{"trace", Align::left},
               {"policy", Align::left},
               {"kernels"},
               {"moves"},
               {"plan"},
               {"simulate"},
               {"peak"},
               {"twice: plan"},
               {"simulate"},
               {"iterations"}});
  for (const std::string& path : paths) {
    const Result<Trace> trace = trace_at(path);
    if (!trace) {
      fmt::print(stderr, "bench/simulate: {}\n", trace.error().message);
      return 1;
    }
    // Two iterations as one would carry tensors within it.
    const bool carries =
        std::ranges::any_of(trace->tensors, [](const Tensor& tensor) { return tensor.carried_from.has_value(); });
    for (const Policy& policy : kPolicies) {
      const Cost once = measure_apart(*trace, policy, machine);
      const Cost both = carries ? Cost{} : measure_apart(doubled(*trace), policy, machine);
      const auto ratio = [](double a, double b) {
        return a > 0 && b > 1e-4 ? fmt::format("{:.2f} x", a / b) : std::string("-");
      };
      table.add_row({trace->name, std::string(policy.name), std::to_string(trace->kernels.size()),
                     once.feasible ? std::to_string(once.moves) : "infeasible", fmt::format("{:.3f} s", once.planning),
                     fmt::format("{:.3f} s", once.simulating), fmt::format("{} MB", once.peak_bytes / 1'000'000),
                     ratio(both.planning, once.planning), ratio(both.simulating, once.simulating),
                     carries ? "-" : fmt::format("{} for {}", both.iterations, once.iterations)});
    }
  }
  fmt::print("{}", table.text());
  return 0;
}

}  // namespace
}  // namespace spillway

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool growth = !arguments.empty() && arguments.front() == "--growth";
  if (growth) arguments.erase(arguments.begin());
  if (arguments.empty() || arguments.front().starts_with('-')) {
    fmt::print(
        stderr,
        "usage: bench/simulate [--growth] TRACE...   (trace files, or statistics folders of the G10 artifact)\n");
    return 2;
  }
  const auto machine = spillway::load_machine("a100");
  CHECK(machine.has_value());
  return growth ? spillway::show_growth(arguments, *machine) : spillway::run(arguments, *machine);
}
