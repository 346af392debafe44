#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "executor/executor.h"
#include "plan/plan.h"

namespace spillway {

// What tests of one executor share: it is told events one after the other, and what it asks for piles up.
struct ExecutorScript {
  void tell(const Event& event) { executor->on(event, commands); }
  const Move& last_move() const { return std::get<Move>(commands.back()); }

  Plan plan;
  std::optional<Executor> executor;
  std::vector<Command> commands;
};

}  // namespace spillway
