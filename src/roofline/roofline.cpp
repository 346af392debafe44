#include "roofline/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/text.h"

namespace spillway {
namespace {

constexpr Nanos kLeast{1};         // that an estimate says
constexpr double kLongest = 1e17;  // of all kernels together, in nanoseconds: a trace cannot tell of more

// So that the times add up to the total, whatever is rounded.
void stretch(Trace& trace, Nanos total) {
  double sum = 0;
  for (const Kernel& kernel : trace.kernels) sum += static_cast<double>(kernel.duration.value);
  if (sum == 0) return;
  double until = 0;
  std::uint64_t given = 0;
  for (Kernel& kernel : trace.kernels) {
    until += static_cast<double>(kernel.duration.value);
    const auto end = static_cast<std::uint64_t>(std::llround(until / sum * static_cast<double>(total.value)));
    kernel.duration = Nanos{end - given};
    given = end;
  }
}

}  // namespace

Efficiency efficiency_of(OperatorClass operators) {
  switch (operators) {
    case OperatorClass::convolution:
      return {.operations = 0.26, .bandwidth = 0.66};
    case OperatorClass::product:
    case OperatorClass::attention:  // This and the next are assumed to be like it.
    case OperatorClass::recurrent:
      return {.operations = 0.52, .bandwidth = 0.8};
    case OperatorClass::normalization:
      return {.operations = 1, .bandwidth = 0.48};
    case OperatorClass::pooling:
      return {.operations = 1, .bandwidth = 0.32};
    case OperatorClass::elementwise:
      return {.operations = 1, .bandwidth = 0.94};
  }
  return {.operations = 1, .bandwidth = 1};
}

double roofline(OperatorClass operators, const Efficiency& part, const DeviceRates& rates, const Work& work) {
  CHECK(rates.are_known());
  const bool on_tensor_cores = operators == OperatorClass::convolution && rates.tensor_gflops != 0;
  const auto gflops = static_cast<double>(on_tensor_cores ? rates.tensor_gflops : rates.gflops);
  const double computing = work.operations / (gflops * part.operations);
  const double moving = 1e9 * work.bytes / (static_cast<double>(rates.bandwidth.value) * part.bandwidth);
  return std::max(computing, moving) + static_cast<double>(rates.launch.value);
}

Nanos estimated_time(const Kernel& kernel, const DeviceRates& rates) {
  if (kernel.reads.empty() && kernel.writes.empty()) return kLeast;  // It is of a host, which runs ahead.
  const OperatorClass operators = operator_class_of(kernel.name);
  const double time = roofline(operators, efficiency_of(operators), rates,
                               {.operations = operations_of(kernel), .bytes = bytes_touched(kernel)});
  return Nanos{static_cast<std::uint64_t>(std::llround(std::clamp(time, static_cast<double>(kLeast.value), kLongest)))};
}

Trace with_estimated_times(Trace trace, const DeviceRates& rates, std::string_view machine,
                           std::optional<Nanos> total) {
  for (Kernel& kernel : trace.kernels) {
    kernel.duration = estimated_time(kernel, rates);
    kernel.gap = {};
  }
  trace.estimated = fmt::format("roofline, {}", machine);
  if (total) {
    stretch(trace, *total);
    trace.estimated += fmt::format(", scaled to {:.6g} s", seconds(*total));
  }
  return trace;
}

}  // namespace spillway
