#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "executor/executor.h"
#include "executor/machine.h"
#include "journal/iteration_ended.h"
#include "memory/page_table.h"
#include "plan/plan.h"

namespace spillway {

// What a journal is made of. The first record is a Beginning; then everything that entered the executor and what it
// answered, in order.

// Blocks in a row that are the same at the start.
struct BlockRun {
  std::uint32_t count = 0;
  Bytes bytes;                 // each
  std::optional<Tier> placed;  // their bytes are there; nothing: they have none
};

// All that the executor begins with.
struct Beginning {
  std::string version;  // of the Spillway that ran
  PerTier<Bytes> capacity;
  std::vector<BlockRun> blocks;
  ExecutorOptions options;
  std::string online;   // the policy whose online part decides where no plan does; empty: none
  Bytes online_device;  // what that was told of the device
};

// The executor was told something.
struct Told {
  Nanos since_last;  // after the event before it
  Nanos ago;         // it had happened so long before: nobody waited for it, and the loop slept
  Event event;
};

// What the executor did about it, unless that was nothing.
struct Asked {
  std::vector<Command> commands;
  std::optional<Failure> failure;
};

// The journal ends here, and the run went on.
struct Stopped {
  std::string reason;
};

// The script has ended by itself; what it gives back while it goes may follow.
struct ScriptEnded {};

// What a script calls such kernels. For people: no decision needs it.
struct Named {
  ExecutionId execution;
  std::string name;
};

using Record = std::variant<Beginning, Told, Asked, Stopped, ScriptEnded, Named, IterationEnded>;

// What a table looks like before anything has happened, and back.
std::vector<BlockRun> block_runs(const PageTable& table);
PageTable page_table(const Beginning& beginning);

}  // namespace spillway
