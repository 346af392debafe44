#include "program.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "memory/tier.h"

namespace spillway {

Trace random_program(std::uint64_t seed, std::uint32_t kernels) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  Trace trace{.name = "program " + std::to_string(seed), .source = "test"};
  std::vector<TensorId> alive;
  for (std::uint32_t at = 0; at < kernels; ++at) {
    Kernel kernel{.name = "kernel" + std::to_string(at), .phase = Phase::forward, .duration = Nanos{1000}};
    std::ranges::shuffle(alive, random);
    const auto whole = [&](TensorId tensor) { return Access{tensor, {}, trace[tensor].bytes}; };
    const std::size_t reads = std::min<std::size_t>(alive.size(), below(4));
    for (std::size_t read = 0; read < reads; ++read) kernel.reads.push_back(whole(alive[read]));
    if (!alive.empty() && below(3) == 0) kernel.writes.push_back(whole(alive.back()));
    if (alive.size() < 20 || kernel.writes.empty()) {
      const TensorId born{static_cast<std::uint32_t>(trace.tensors.size())};
      trace.tensors.push_back(
          {"tensor" + std::to_string(born.value), kBlockBytes * (1 + below(4)), TensorKind::activation, false, {}});
      kernel.writes.push_back(whole(born));
      alive.push_back(born);
    }
    while (alive.size() > 18 || (!alive.empty() && below(8) == 0)) {
      kernel.frees.push_back(alive.back());
      alive.pop_back();
    }
    trace.kernels.push_back(std::move(kernel));
  }
  return trace;
}

}  // namespace spillway
