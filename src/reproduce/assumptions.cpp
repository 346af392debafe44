#include "reproduce/assumptions.h"

#include <fmt/format.h>

#include "plan/machine_file.h"
#include "policies/policies.h"

namespace spillway {
namespace {

constexpr std::uint32_t kShorter = 80, kLonger = 125;  // percent of an estimate

// Before those that the experiment has already, which count more.
void assume(Experiment& experiment, const std::string& change) {
  experiment.overrides.insert(experiment.overrides.begin(), change);
}

Experiment with_fault_cost(Experiment experiment, double factor) {
  const auto policy = policy_by_name(experiment.policy);
  const auto machine = load_machine(experiment.machine);
  if (!policy || !machine || !policy->traits.kernels_fault) return experiment;
  assume(experiment, fmt::format("fault.cost={:.0f}ns", factor * static_cast<double>(machine->fault.cost.value)));
  return experiment;
}

Experiment cheaper_faults(Experiment experiment, const Traces& /*traces*/) {
  return with_fault_cost(std::move(experiment), 0.5);
}

Experiment dearer_faults(Experiment experiment, const Traces& /*traces*/) {
  return with_fault_cost(std::move(experiment), 2);
}

Experiment with_flash(Experiment experiment, const Traces& /*traces*/) {
  const auto policy = policy_by_name(experiment.policy);
  if (policy && policy->traits.uses_ssd && experiment.machine == "a100") experiment.machine = "a100-flash";
  return experiment;
}

Experiment with_less_spare_flash(Experiment experiment, const Traces& /*traces*/) {
  const auto machine = load_machine(experiment.machine);
  if (machine && machine->flash) assume(experiment, "flash.over_provisioning=7%");
  return experiment;
}

Experiment with_times(Experiment experiment, const Traces& traces, std::uint32_t percent) {
  if (has_estimates(experiment, traces)) experiment.estimates_percent = percent;
  return experiment;
}

Experiment with_shorter_kernels(Experiment experiment, const Traces& traces) {
  return with_times(std::move(experiment), traces, kShorter);
}

Experiment with_longer_kernels(Experiment experiment, const Traces& traces) {
  return with_times(std::move(experiment), traces, kLonger);
}

}  // namespace

const std::vector<Assumption>& assumptions() {
  static const std::vector<Assumption> all{
      {"a page fault costs half as much", cheaper_faults},
      {"a page fault costs twice as much", dearer_faults},
      {"the SSD's flash collects garbage (a100-flash)", with_flash},
      {"the flash has a quarter of the spare space", with_less_spare_flash},
      {"estimated kernels take 20 % less", with_shorter_kernels},
      {"estimated kernels take 25 % more", with_longer_kernels},
  };
  return all;
}

}  // namespace spillway
