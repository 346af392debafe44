#pragma once

#include <memory>

#include "hook/torch/tensor_memory.h"
#include "session/session.h"

namespace spillway {

// The session's GPU, whose launches wait for what they touch. CUDA starts here, if it has not. The launch shim is the
// process's driver.
Result<std::unique_ptr<TensorMemory>> start_gpu_memory(Session& session);

}  // namespace spillway
