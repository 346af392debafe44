#pragma once

#include <memory>
#include <optional>
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
  executor.on(Adopted{std::make_shared<FollowedPlan>(FollowedPlan{.id = {},
                                                                  .kernels = kernels,
                                                                  .commands = std::move(commands),
                                                                  .homes = std::move(homes),
                                                                  .rows = std::move(rows),
                                                                  .births = std::move(births)})},
              nothing);
}

// What tests of one executor share: it is told events one after the other, and what it asks for piles up.
struct ExecutorScript {
  void tell(const Event& event) { executor->on(event, commands); }
  const Move& last_move() const { return std::get<Move>(commands.back()); }

  Plan plan;
  std::optional<Executor> executor;
  std::vector<Command> commands;
};

}  // namespace spillway
