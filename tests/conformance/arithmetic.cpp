#include "arithmetic.h"

#include <map>

namespace spillway {

std::vector<std::uint64_t> run_in_plain_memory(const Trace& program, const Layout& layout, Bytes block_bytes) {
  std::map<std::uint32_t, std::vector<std::byte>> blocks;
  std::vector<std::uint64_t> sums;
  for (const Kernel& kernel : program.kernels)
    sums.push_back(compute(
        layout.accesses(program, kernel), sums.size(),
        [&](BlockId block) {
          blocks[block.value].resize(block_bytes.value);
          return blocks[block.value].data();
        },
        block_bytes));
  return sums;
}

}  // namespace spillway
