// How far the roofline's estimates are from measured traces, and which parts of a device's best would be the nearest:
// bench/roofline GFLOPS TENSOR_GFLOPS BANDWIDTH LAUNCH TRACE... (67000 494700 3.35TB/s 2us), the traces of one device,
// with shapes.
//
// A row for each class of operators: how many kernels, their measured time and the estimate of it, the median error of
// one kernel with the parts in force, and the parts that make it least. Errors are parts of the measured time. Kernels
// of less than five launches are left out: they measure launches.

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/median.h"
#include "base/text.h"
#include "report/table.h"
#include "roofline/roofline.h"
#include "trace/format.h"

namespace spillway {
namespace {

struct Measured {
  Work work;
  double nanos;
};

double median_error(const std::vector<Measured>& kernels, OperatorClass operators, const DeviceRates& rates,
                    const Efficiency& part) {
  std::vector<double> errors;
  errors.reserve(kernels.size());
  for (const Measured& one : kernels)
    errors.push_back(std::abs(roofline(operators, part, rates, one.work) / one.nanos - 1));
  return median(std::move(errors));
}

// Whose limit is memory alone has one part to find.
bool is_memorys(OperatorClass one) {
  return one == OperatorClass::normalization || one == OperatorClass::pooling || one == OperatorClass::elementwise;
}

Efficiency nearest(const std::vector<Measured>& kernels, const DeviceRates& rates, OperatorClass operators) {
  Efficiency best = efficiency_of(operators);
  double least = median_error(kernels, operators, rates, best);
  for (int operations = is_memorys(operators) ? 100 : 2; operations <= 100; operations += 2)
    for (int bandwidth = 2; bandwidth <= 100; bandwidth += 2) {
      const Efficiency part{.operations = operations / 100.0, .bandwidth = bandwidth / 100.0};
      const double error = median_error(kernels, operators, rates, part);
      if (error >= least) continue;
      least = error;
      best = part;
    }
  return best;
}

Result<> compare(const DeviceRates& rates, const std::vector<std::string>& files) {
  std::array<std::vector<Measured>, kOperatorClasses.size()> classes;
  for (const std::string& file : files) {
    TRY(const LoadedTrace loaded, load_trace(file));
    if (!loaded.trace.estimated.empty()) return fail(Errc::bad_input, file + ": its times are estimates themselves");
    for (const Kernel& kernel : loaded.trace.kernels)
      if (kernel.duration > rates.launch * 5 && bytes_touched(kernel) > 0)
        classes[static_cast<std::size_t>(operator_class_of(kernel.name))].push_back(
            {.work = {.operations = operations_of(kernel), .bytes = bytes_touched(kernel)},
             .nanos = static_cast<double>(kernel.duration.value)});
  }
  Table table({{"class", Align::left},
               {"kernels"},
               {"measured"},
               {"estimated"},
               {"operations"},
               {"bandwidth"},
               {"median error"},
               {"best operations"},
               {"bandwidth"},
               {"median error"}});
  for (const OperatorClass one : kOperatorClasses) {
    const auto& kernels = classes[static_cast<std::size_t>(one)];
    if (kernels.empty()) continue;
    const Efficiency now = efficiency_of(one), best = nearest(kernels, rates, one);
    double measured = 0, estimated = 0;
    for (const Measured& kernel : kernels) {
      measured += kernel.nanos;
      estimated += roofline(one, now, rates, kernel.work);
    }
    const auto percent = [](double part) { return fmt::format("{:.0f} %", 100 * part); };
    table.add_row({std::string(to_text(one)), std::to_string(kernels.size()), fmt::format("{:.1f} ms", measured / 1e6),
                   fmt::format("{:.1f} ms", estimated / 1e6), percent(now.operations), percent(now.bandwidth),
                   percent(median_error(kernels, one, rates, now)), percent(best.operations), percent(best.bandwidth),
                   percent(median_error(kernels, one, rates, best))});
  }
  fmt::print("{}", table.text());
  return {};
}

Result<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{})
    return fail(Errc::usage, fmt::format("'{}' is no whole number", text));
  return value;
}

Result<> run(int count, char** arguments) {
  if (count < 6) return fail(Errc::usage, "bench/roofline GFLOPS TENSOR_GFLOPS BANDWIDTH LAUNCH TRACE...");
  DeviceRates rates;
  TRY(rates.gflops, whole_number(arguments[1]));
  TRY(rates.tensor_gflops, whole_number(arguments[2]));
  TRY(rates.bandwidth, parse_rate(arguments[3]));
  TRY(rates.launch, parse_duration(arguments[4]));
  if (!rates.are_known()) return fail(Errc::usage, "GFLOPS and BANDWIDTH are numbers above 0");
  return compare(rates, {arguments + 5, arguments + count});
}

}  // namespace
}  // namespace spillway

int main(int count, char** arguments) {
  const auto done = spillway::run(count, arguments);
  if (!done) fmt::print(stderr, "{}\n", done.error().message);
  return done ? 0 : 1;
}
