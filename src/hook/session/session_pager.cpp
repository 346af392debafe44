#include "hook/session/session_pager.h"

namespace spillway {

PagerConfig pager_config(const SessionConfig& wanted) {
  PagerConfig config;
  config.device = Bytes{wanted.device_budget_bytes};
  config.host = Bytes{wanted.host_budget_bytes};
  config.ssd_directory = wanted.ssd_directory.data();
  config.ssd_capacity = Bytes{wanted.ssd_capacity_bytes};
  config.method = wanted.eviction_path;
  return config;
}

}  // namespace spillway
