#include "hook/session/session_pager.h"

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

PagerConfig pager_config(const SessionConfig& wanted) {
  PagerConfig config;
  config.device = Bytes{wanted.device_budget_bytes};
  config.host = Bytes{wanted.host_budget_bytes};
  config.ssd_directory = wanted.ssd_directory.data();
  config.ssd_capacity = Bytes{wanted.ssd_capacity_bytes};
  config.method = method_of(wanted.eviction_path);
  return config;
}

}  // namespace spillway
