#include "cli/predictions.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "base/files.h"
#include "hook/planning/run_planner.h"
#include "hook/session/session_pager.h"
#include "policies/policies.h"
#include "trace/format.h"

namespace spillway {
namespace {

MachineModel machine_of(const RunReport& report, const SessionConfig& config) {
  return measured_machine(config).with_rates(report.ssd_read_rate, report.ssd_write_rate);
}

// The steady iteration with so many parts of this memory.
struct Predicted {
  std::vector<RunReport::Prediction> budgets;
  Nanos kernels;
  LinkBound bound;  // with the first budget
  std::string largest_kernel;
  Bytes largest_bytes;
};

// At a time, but for tensors of which it touches some rows only.
Bytes used_by(const Kernel& kernel, const Trace& trace) {
  std::vector<TensorId> tensors;
  for (const auto* accesses : {&kernel.reads, &kernel.writes})
    for (const Access& access : *accesses)
      if (!access.sparse) tensors.push_back(access.tensor);
  std::ranges::sort(tensors);
  const auto twice = std::ranges::unique(tensors);
  tensors.erase(twice.begin(), twice.end());
  Bytes sum;
  for (const TensorId tensor : tensors) sum += trace[tensor].bytes;
  return sum;
}

Result<Predicted> predictions(const RunReport& report, const SessionConfig& config, Bytes whole,
                              std::span<const double> parts, const std::function<bool()>& goes_on) {
  if (config.rates.copy == 0)
    return fail(Errc::unavailable, report.unlimited || plans(report.policy)
                                       ? "this machine could not be measured"
                                       : fmt::format("{} plans nothing, --policy auto does", report.policy));
  if (report.recorded.empty()) return fail(Errc::unavailable, report.not_recorded);
  TRY(const LoadedTrace loaded, load_trace(report.recorded));
  std::vector<Bytes> budgets;
  for (const double part : parts)
    budgets.push_back(Bytes{static_cast<std::uint64_t>(static_cast<double>(whole.value) * part) >> 20 << 20});
  const std::string_view policy = report.unlimited ? kAuto : std::string_view(report.policy);
  if (!report.has_optimizer && policy != kAuto) return fail(Errc::unavailable, std::string(kNoOptimizer));
  TRY(const auto predicted, predict(loaded.trace, machine_of(report, config),
                                    report.has_optimizer ? policy : kAutoWithoutPlan, budgets, goes_on));
  Predicted result;
  for (std::size_t i = 0; i < predicted.size(); ++i)
    result.budgets.push_back(
        {.part = parts[i],
         .device = predicted[i].device,
         .iteration = predicted[i].device < least_device_budget() ? std::nullopt : predicted[i].iteration,
         .policy = predicted[i].policy});
  for (const Kernel& kernel : loaded.trace.kernels) result.kernels += kernel.gap + kernel.duration;
  result.bound = predicted.front().bound;
  for (const Kernel& kernel : loaded.trace.kernels)
    if (const Bytes used = used_by(kernel, loaded.trace); used > result.largest_bytes) {
      result.largest_kernel = kernel.name;
      result.largest_bytes = used;
    }
  return result;
}

RunReport::Outlook outlook(Predicted predicted, const RunReport& report, const SessionConfig& config) {
  RunReport::Outlook outlook{.budgets = std::move(predicted.budgets),
                             .kernels = predicted.kernels,
                             .ssd_in = predicted.bound.ssd.in,
                             .ssd_out = predicted.bound.ssd.out,
                             .ssd_time = {},
                             .largest_kernel = std::move(predicted.largest_kernel),
                             .largest_bytes = predicted.largest_bytes};
  const MachineModel machine = machine_of(report, config);
  const bool is_slower = std::min(machine.ssd_read(), machine.ssd_write()) < BytesPerSecond{config.rates.copy};
  if (is_slower && outlook.ssd_in > Bytes{})
    outlook.ssd_time = std::max(transfer_time(outlook.ssd_out, machine.ssd_write()),
                                transfer_time(outlook.ssd_in, machine.ssd_read()));
  return outlook;
}

}  // namespace

Result<MemoryFile> MemoryFile::make() {
  const int fd = ::memfd_create("spillway-trace", MFD_CLOEXEC);
  if (fd < 0) return fail(Errc::io, fmt::format("cannot make a file in memory: {}", errno_text(errno)));
  return MemoryFile(UniqueFd(fd));
}

std::string MemoryFile::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_.get()); }

void add_predictions(RunReport& report, const SessionConfig& config, const std::function<bool()>& goes_on) {
  constexpr std::array kLess{0.75, 0.50, 0.35, 0.25};
  constexpr std::array kMore{1.0, 1.25, 1.5, 2.0};
  report.least_device_budget = least_device_budget();
  if (report.unlimited) {
    auto made = predictions(report, config, report.peak.device, kLess, goes_on);
    if (made) {
      report.unlimited_iteration = made->kernels;
      report.predictions = std::move(made->budgets);
    } else {
      report.not_predicted = made.error().message;
    }
  } else if (has_moved(report)) {
    if (auto made = predictions(report, config, report.device_budget, kMore, goes_on))
      report.outlook = outlook(*std::move(made), report, config);
    else
      report.no_outlook = made.error().message;
  }
}

}  // namespace spillway
