#pragma once

#include <array>
#include <memory>

#include "executor/online_policy.h"
#include "plan/parameters.h"

namespace spillway {

// DeepUM's correlation prefetching (sections 4.2 and 5.1): it remembers which kernel follows which and what each uses,
// and says what the next kernels will use. Freed blocks (section 5.2) need nothing here: what is dead is dropped first.
//
// Where DeepUM's driver sees page faults only and has to infer a kernel's blocks and where they begin and end from
// those, we know what a kernel is given: the block table of an execution ID holds that, tensor by tensor, so that it
// stays true when tensors come to lie elsewhere. What is accessed sparsely is learned from faults, as there.
inline constexpr std::array kDeepumParameters{
    ParameterSpec{"ahead", 32, 1, 4096, true, "kernels to look ahead, N (DeepUM, figure 11)"}};
std::unique_ptr<OnlinePolicy> make_deepum(Bytes device, const Parameters& parameters);

}  // namespace spillway
