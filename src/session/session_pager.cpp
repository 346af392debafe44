#include "session/session_pager.h"

namespace spillway {

PagerConfig pager_config(const SessionConfig& wanted) {
  PagerConfig config;
  config.device = Bytes{wanted.device_budget_bytes};
  config.host = Bytes{wanted.host_budget_bytes};
  config.block_bytes = Bytes{wanted.block_bytes};
  config.ssd_directory = wanted.ssd_directory.data();
  config.ssd_capacity = Bytes{wanted.ssd_capacity_bytes};
  config.teardown_path = wanted.teardown_path.data();
  config.method = wanted.eviction_path;
  config.journal.path = wanted.journal_path.data();
  return config;
}

MachineModel measured_machine(const SessionConfig& wanted) {
  MachineModel machine;
  machine.name = "this";
  machine.device.memory = Bytes{wanted.device_budget_bytes};
  machine.host.memory = Bytes{wanted.host_budget_bytes};
  machine.host.keeps_copies = wanted.gpu >= 0 ? 1 : 0;
  machine.link.to_device = wanted.rates.to_device;
  machine.link.from_device = wanted.rates.from_device;
  machine.ssd.read = wanted.rates.ssd_read;
  machine.ssd.write = wanted.rates.ssd_write;
  machine.ssd.read_latency = wanted.rates.ssd_read_latency;
  machine.ssd.write_latency = wanted.rates.ssd_write_latency;
  machine.ssd.capacity = Bytes{wanted.ssd_free_bytes};
  machine.fault.cost = wanted.rates.fault;
  machine.fault.bytes = Bytes{wanted.block_bytes};
  return machine;
}

}  // namespace spillway
