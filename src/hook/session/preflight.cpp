#include "hook/session/preflight.h"

#include "hook/session/budget.h"
#include "machines/cpu/doorbell.h"
#include "machines/cpu/eviction_method.h"
#include "machines/cpu/ring.h"
#include "machines/cpu/spill_file.h"

namespace spillway {
namespace {

EvictionMethod method_of(EvictionPath path) {
  switch (path) {
    case EvictionPath::move:
      return EvictionMethod::move;
    case EvictionPath::copy:
      return EvictionMethod::copy;
    case EvictionPath::automatic:
      break;
  }
  return EvictionMethod::automatic;
}

}  // namespace

Result<> preflight(const SessionConfig& config) {
  TRY_VOID(check_budgets(Bytes{config.device_budget_bytes}, Bytes{config.host_budget_bytes}));
  TRY(const SpillFile file, SpillFile::open(config.ssd_directory.data(), Bytes{config.ssd_capacity_bytes}));
  TRY_VOID(choose(method_of(config.eviction_path)));
  TRY(const Doorbell bell, Doorbell::make());
  TRY_VOID(Ring::open(file.fd(), bell));
  return {};
}

}  // namespace spillway
