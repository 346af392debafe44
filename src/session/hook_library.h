#pragma once

#include <string>

#include "base/result.h"

namespace spillway {

// Where the libraries are that are loaded into the script's process.
struct HookLibraries {
  std::string preload;     // small, goes into every process through LD_PRELOAD
  std::string torch;       // links PyTorch; the small one loads it when PyTorch appears
  std::string cuda;        // the launch shim, through LD_PRELOAD; empty for the CPU, like the next
  std::string torch_cuda;  // PyTorch's allocator for a GPU; the one that links PyTorch loads it when CUDA starts
};

// Looks beside the running program: in the build tree it came from, or in the installed tree.
Result<HookLibraries> find_hook_libraries(bool for_gpu);

// The same library by a name that LD_PRELOAD can hold: a space or colon in it would end it, so such a path is replaced
// by one through a descriptor of this process, which stays open as long as the process lives.
Result<std::string> preload_name(const std::string& path);

}  // namespace spillway
