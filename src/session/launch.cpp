#include "session/launch.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/files.h"
#include "machines/cuda/driver_variable.h"
#include "session/hook_library.h"

namespace spillway {

Result<Supervised> launch(SharedSession& session, const std::vector<std::string>& command, const Watch& watch) {
  const bool for_gpu = session->config.gpu >= 0;
  TRY(const HookLibraries libraries, find_hook_libraries(for_gpu));
  TRY_VOID(set_text(session->config.torch_library, libraries.torch, "the path of libspillway_torch.so"));
  Preloaded preloaded;
  TRY(preloaded.libraries, preload_name(libraries.preload));
  if (for_gpu) {
    TRY_VOID(
        set_text(session->config.torch_cuda_library, libraries.torch_cuda, "the path of libspillway_torch_cuda.so"));
    TRY(const std::string cuda, preload_name(libraries.cuda));
    preloaded.libraries += ":" + cuda;
    preloaded.environment.push_back(fmt::format("{}={}", kCudaDriverVariable, session->config.cuda_driver.data()));
  }
  TRY(Supervised supervised, supervise(session, command, preloaded, watch));
  if (!supervised.problem.empty()) tell(fmt::format("spillway: error: {}\n", supervised.problem));
  return supervised;
}

}  // namespace spillway
