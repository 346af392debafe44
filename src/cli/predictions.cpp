#include "cli/predictions.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/files.h"
#include "hook/planning/run_planner.h"
#include "hook/session/session_pager.h"
#include "trace/format.h"

namespace spillway {
namespace {

// How the steady iteration would do with less memory.
Result<std::vector<RunReport::Prediction>> predictions(const std::string& trace_file, Bytes peak,
                                                       const SessionConfig& config) {
  constexpr std::array kParts{0.75, 0.50, 0.35, 0.25};
  if (config.rates.copy == 0) return fail(Errc::unavailable, "this machine could not be measured");
  TRY(const LoadedTrace loaded, load_trace(trace_file));
  std::vector<Bytes> budgets;
  for (const double part : kParts)
    budgets.push_back(Bytes{static_cast<std::uint64_t>(static_cast<double>(peak.value) * part) >> 20 << 20});
  TRY(const auto predicted, predict(loaded.trace, measured_machine(config), budgets));
  std::vector<RunReport::Prediction> result;
  for (std::size_t i = 0; i < predicted.size(); ++i)
    result.push_back({.part = kParts[i],
                      .device = predicted[i].device,
                      .iteration = predicted[i].device < least_device_budget() ? std::nullopt : predicted[i].iteration,
                      .policy = predicted[i].policy});
  return result;
}

}  // namespace

Result<MemoryFile> MemoryFile::make() {
  const int fd = ::memfd_create("spillway-trace", MFD_CLOEXEC);
  if (fd < 0) return fail(Errc::io, fmt::format("cannot make a file in memory: {}", errno_text(errno)));
  return MemoryFile(UniqueFd(fd));
}

std::string MemoryFile::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_.get()); }

void add_predictions(RunReport& report, const SessionConfig& config) {
  if (report.recorded.empty()) {
    report.not_predicted = report.not_recorded;
  } else if (auto made = predictions(report.recorded, report.peak.device, config)) {
    report.predictions = *std::move(made);
  } else {
    report.not_predicted = made.error().message;
  }
}

}  // namespace spillway
