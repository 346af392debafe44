#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "executor/executor.h"
#include "plan/plan.h"

namespace spillway {

// For tests: tells the executor of a plan for so many kernels, which says of its iteration what is named.
inline void adopt(Executor& executor, Plan commands, std::uint32_t kernels, std::vector<BlockRange> homes = {},
                  std::vector<Foresight::Row> rows = {}, std::vector<std::vector<BlockRange>> births = {}) {
  std::vector<Command> nothing;
  FollowedPlan plan{{}, kernels, std::move(commands), std::move(homes), std::move(rows), std::move(births)};
  executor.on(Adopted{std::make_shared<FollowedPlan>(std::move(plan))}, nothing);
}

// A block for each letter: on the device ('d'), on the SSD ('s'), or without bytes ('-'); each tier has room for so
// many.
inline PageTable table_of(std::string_view blocks, PerTier<std::uint32_t> room) {
  PageTable table({kBlockBytes * room.device, kBlockBytes * room.host, kBlockBytes * room.ssd});
  for (const char where : blocks) {
    const BlockId block{table.block_count()};
    table.add_blocks(1, kBlockBytes);
    if (where != '-') table.place(block, where == 'd' ? Tier::device : Tier::ssd);
  }
  return table;
}

// What tests of one executor share: it is told events one after the other, and what it asks for piles up.
struct ExecutorScript {
  ExecutorScript(std::string_view blocks, PerTier<std::uint32_t> room, const ExecutorOptions& options = {},
                 std::unique_ptr<OnlinePolicy> online = nullptr)
      : executor(table_of(blocks, room), options, std::move(online)) {}

  void tell(const Event& event) { executor.on(event, commands); }
  // A tensor in each block, of the same number.
  void allocate(std::uint32_t first, std::uint32_t end) {
    for (; first < end; ++first) tell(Allocated{{first}, {{first}, 1}});
  }
  const Move& last_move() const { return std::get<Move>(commands.back()); }
  std::vector<Move> moves() const {
    std::vector<Move> moves;
    for (const Command& command : commands)
      if (const auto* move = std::get_if<Move>(&command)) moves.push_back(*move);
    return moves;
  }
  BlockState state(std::uint32_t block) const { return executor.table().state({block}); }

  Executor executor;
  std::vector<Command> commands;
};

}  // namespace spillway
