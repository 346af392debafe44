#include "cli/predictions.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/files.h"
#include "machines/cpu/budgets.h"
#include "runtime/run_planner.h"
#include "session/session_pager.h"
#include "trace/format.h"

namespace spillway {
namespace {

MachineModel machine_of(const RunReport& report, const SessionConfig& config) {
  return measured_machine(config).with_rates(report.ssd_read_rate, report.ssd_write_rate);
}

// Threads that fault keep some blocks each; launches on a GPU get what they need.
Bytes least_of(const SessionConfig& config) {
  return config.gpu < 0 ? least_device_budget() : Bytes{config.block_bytes};
}

// Of the recorded iteration, with parts of what the run needed.
Result<> predict_with_less(RunReport& report, const SessionConfig& config, const std::function<bool()>& goes_on) {
  constexpr std::array kParts{0.75, 0.50, 0.35, 0.25};
  if (!config.rates.are_known()) return fail(Errc::unavailable, "this machine could not be measured");
  if (report.recorded.empty()) return fail(Errc::unavailable, report.not_recorded);
  TRY(const LoadedTrace loaded, load_trace(report.recorded));
  std::array<Bytes, kParts.size()> budgets;
  std::ranges::transform(kParts, budgets.begin(), [&](double part) {
    return Bytes{static_cast<std::uint64_t>(static_cast<double>(report.memory.peak.device.value) * part) >> 20 << 20};
  });
  TRY(const RunPolicy policy, run_policy(kAuto));
  TRY(const auto predicted, predict(loaded.trace, machine_of(report, config), Bytes{config.block_bytes},
                                    report.has_optimizer ? policy : policy.unplanned(), budgets, goes_on));
  for (std::size_t i = 0; i < predicted.size(); ++i)
    report.predictions.push_back(
        {.part = kParts[i],
         .device = predicted[i].device,
         .iteration = predicted[i].device < least_of(config) ? std::nullopt : predicted[i].iteration,
         .policy = predicted[i].policy});
  for (const Kernel& kernel : loaded.trace.kernels) report.unlimited_iteration += kernel.gap + kernel.duration;
  return {};
}

}  // namespace

Result<MemoryFile> MemoryFile::make() {
  const int fd = ::memfd_create("spillway-trace", MFD_CLOEXEC);
  if (fd < 0) return fail(Errc::io, fmt::format("cannot make a file in memory: {}", errno_text(errno)));
  return MemoryFile(UniqueFd(fd));
}

std::string MemoryFile::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_.get()); }

void add_predictions(RunReport& report, const SessionConfig& config, const std::function<bool()>& goes_on) {
  report.least_device_budget = least_of(config);
  if (const auto predicted = predict_with_less(report, config, goes_on); !predicted)
    report.not_predicted = predicted.error().message;
}

}  // namespace spillway
