#pragma once

#include <memory>

#include "hook/torch/tensor_memory.h"
#include "session/session.h"

namespace spillway {

// Memory whose resident part is bounded by the session's budget. Keeps the session's counters up to date.
Result<std::unique_ptr<TensorMemory>> start_paged_memory(Session& session);

}  // namespace spillway
