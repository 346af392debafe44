#pragma once

#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "executor/executor.h"
#include "executor/executor_script.h"
#include "executor/machine.h"
#include "machines/sim/layout.h"
#include "memory/tier.h"
#include "rules.h"
#include "trace/trace.h"

namespace spillway {

// A kernel's arithmetic: what it writes depends on every byte that it reads, and on which kernel and block it is.
inline std::uint64_t digest(const std::byte* block, Bytes bytes, std::uint64_t sum) {
  return XXH3_64bits_withSeed(block, bytes.value, sum);
}
inline void write_result(std::byte* block, Bytes bytes, std::uint64_t result) {
  constexpr std::size_t kPage = 4096;
  std::memcpy(block, &result, sizeof result);
  for (std::size_t done = sizeof result; done < bytes.value; done *= 2) std::memcpy(block + done, block, done);
  for (std::size_t at = 0; at < bytes.value; at += kPage) std::memcpy(block + at, &at, sizeof at);
}
// `memory` gives a block's bytes.
template <class Memory>
std::uint64_t compute(std::span<const BlockAccess> accesses, std::uint64_t kernel, Memory&& memory,
                      Bytes block_bytes = kBlockBytes) {
  std::uint64_t sum = kernel;
  for (const BlockAccess& access : accesses)
    for (BlockId block = access.blocks.first; block < access.blocks.end(); ++block.value)
      if (access.writes)
        write_result(memory(block), block_bytes, sum + block.value);
      else
        sum = digest(memory(block), block_bytes, sum);
  return sum;
}

// The results of all kernels in a run without limits, where tensors lie like that, with blocks of this size.
std::vector<std::uint64_t> run_in_plain_memory(const Trace& program, const Layout& layout,
                                               Bytes block_bytes = kBlockBytes);

inline std::uint32_t kernels_in(const Trace& program) { return static_cast<std::uint32_t>(program.kernels.size()); }

// Lets the executor decide until `over` says that the program has ended and nothing moves, or the machine fails.
template <class Over>
Result<> run_loop(RuledMachine& machine, Executor& executor, bool keep_copies, std::uint32_t kernels, Over&& over) {
  // Finds nothing to bring back when the first kernel starts; but a plan with it keeps the copies of all that comes.
  Plan plan;
  if (keep_copies) plan.prefetches = {{{0}, {0}, true}};
  adopt(executor, plan, kernels);
  std::vector<Command> commands;
  while (!over() || !machine.idle()) {
    TRY(const auto event, machine.wait());
    commands.clear();
    executor.on(event.what, commands);
    CHECK(!executor.failure());
    machine.submit(commands);
    executor.check_invariants();
  }
  return {};
}

}  // namespace spillway
