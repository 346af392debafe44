#include "journal/record.h"

namespace spillway {

std::vector<BlockRun> block_runs(const PageTable& table) {
  std::vector<BlockRun> runs;
  for (BlockId block{0}; block.value < table.block_count(); ++block.value) {
    BlockRun one{.count = 1, .bytes = table.bytes(block), .placed = {}};
    if (table.state(block) == BlockState::resident) one.placed = Tier::device;
    if (table.state(block) == BlockState::stored) one.placed = table.lower(block);
    if (!runs.empty() && runs.back().bytes == one.bytes && runs.back().placed == one.placed)
      ++runs.back().count;
    else
      runs.push_back(one);
  }
  return runs;
}

PageTable page_table(const Beginning& beginning) {
  PageTable table(beginning.capacity);
  for (const BlockRun& run : beginning.blocks) {
    BlockId block{table.block_count()};
    table.add_blocks(run.count, run.bytes);
    if (!run.placed) continue;
    for (std::uint32_t left = run.count; left > 0; --left, ++block.value) table.place(block, *run.placed);
  }
  return table;
}

}  // namespace spillway
