#pragma once

#include <array>
#include <memory>

#include "executor/online_policy.h"
#include "plan/parameters.h"

namespace spillway {

// DeepUM as published (sections 4.2 and 5.1). Of kernels it is told when they start and their execution IDs. What they
// use it learns from their page faults alone.
inline constexpr std::array kDeepumFaultsParameters{
    ParameterSpec{"ahead", 32, 1, 4096, true, "kernels to look ahead, N (DeepUM, figure 11)"},
    ParameterSpec{"assoc", 2, 1, 64, true, "blocks in a row of a block table, Assoc (DeepUM, section 6.2)"},
    ParameterSpec{"succs", 4, 1, 64, true, "successors of a block, NumSuccs (DeepUM, section 6.2)"},
    ParameterSpec{"rows", 2048, 1, 1 << 20, true, "rows of a block table, NumRows (DeepUM, section 6.2)"},
    ParameterSpec{"prefetch", 1, 0, 1, true, "1: prefetches what the tables expect (DeepUM, figure 10)"},
    ParameterSpec{"pre-evict", 1, 0, 1, true,
                  "1: keeps a block of room, and on the device what is expected (DeepUM, section 5.1, figure 10)"},
    ParameterSpec{"pool", 0, 0, 1, true, "1: simulated tensors lie in PyTorch's pool (DeepUM, section 5.2)"},
    ParameterSpec{"invalidate", 1, 0, 1, true,
                  "1: what is dead in that pool is dropped (DeepUM, section 5.2, figure 10)"}};
std::unique_ptr<OnlinePolicy> make_deepum_faults(Bytes device, const Parameters& parameters);

}  // namespace spillway
