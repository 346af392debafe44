#include "session/launch.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/files.h"
#include "session/hook_library.h"

namespace spillway {

Result<Supervised> launch(SharedSession& session, const std::vector<std::string>& command, const Watch& watch) {
  TRY(const HookLibraries libraries, find_hook_libraries());
  TRY_VOID(set_text(session->config.torch_library, libraries.torch, "the path of libspillway_torch.so"));
  TRY(const std::string preload, preload_name(libraries.preload));
  TRY(Supervised supervised, supervise(session, command, preload, watch));
  if (!supervised.problem.empty()) tell(fmt::format("spillway: error: {}\n", supervised.problem));
  return supervised;
}

}  // namespace spillway
