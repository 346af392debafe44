#include "machines/sim/sim_setup.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace spillway {
namespace {

constexpr Bytes kUnlimited{std::uint64_t{1} << 62};

}  // namespace

Result<SimHardware> hardware_of(const MachineModel& machine) {
  const auto rate = [](BytesPerSecond value) { return static_cast<double>(value.value); };
  SimHardware hardware{.links = {.to_device = rate(machine.link.to_device),
                                 .from_device = rate(machine.link.from_device),
                                 .ssd_read = rate(machine.ssd_read()),
                                 .ssd_write = rate(machine.ssd_write()),
                                 .host_latency = machine.link.latency,
                                 .ssd_read_latency = machine.ssd.read_latency,
                                 .ssd_write_latency = machine.ssd.write_latency},
                       .faults = {.latency = machine.fault.latency,
                                  .cost = machine.fault.cost,
                                  .granule = machine.fault.bytes,
                                  .batch = machine.fault.batch,
                                  .widen = machine.fault.widen != 0},
                       .flash = {}};
  if (!machine.flash || machine.ssd_capacity() == Bytes{}) return hardware;
  TRY(hardware.flash, flash_geometry(machine));
  return hardware;
}

PerTier<Bytes> capacity(const MachineModel& machine, const PolicyTraits& traits) {
  if (traits.unlimited_device) return {kUnlimited, kUnlimited, kUnlimited};
  return {machine.device.memory, traits.uses_host ? machine.host_memory() : Bytes{},
          traits.uses_ssd ? machine.ssd_capacity() : Bytes{}};
}

ExecutorOptions executor_options(const MachineModel& machine, const PolicyTraits& traits) {
  ExecutorOptions options{.kernels_fault = traits.kernels_fault};
  options.migration.victims_to_host = traits.uses_host;
  options.migration.keeps_copies = traits.keeps_copies;
  options.migration.host_keeps_copies = machine.host.keeps_copies != 0;
  if (traits.whole_tensors_leave) options.migration.whole_tensors_of = traits.least_victim;
  return options;
}

Bytes largest_working_set(const Trace& trace, const Layout& layout) {
  std::vector<std::uint32_t> counted_for(layout.block_bytes.size(), UINT32_MAX);
  Bytes largest;
  for (std::uint32_t at = 0; at < trace.kernels.size(); ++at) {
    Bytes sum;
    for (const BlockAccess& access : layout.accesses(trace, trace.kernels[at], true))
      for (BlockId block = access.blocks.first; block < access.blocks.end(); ++block.value)
        if (std::exchange(counted_for[block.value], at) != at) sum += layout.block_bytes[block.value];
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace spillway
