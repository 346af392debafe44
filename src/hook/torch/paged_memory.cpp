#include "hook/torch/paged_memory.h"

#include <unistd.h>

#include <algorithm>

#include "machines/real/watched_io.h"
#include "runtime/run_policy.h"
#include "session/hook_side.h"
#include "session/session_pager.h"

namespace spillway {
namespace {

// What an image of this process that has replaced itself (exec) left in the session counts as well.
MemoryFigures sum_of(const MemoryFigures& before, MemoryFigures now) {
  now.faults += before.faults;
  now.first_touches += before.first_touches;
  now.moved += before.moved;
  now.dropped_clean += before.dropped_clean;
  now.unseen_writes += before.unseen_writes;
  now.written += before.written;
  now.stall += before.stall;
  for (const Tier tier : kTiers) now.peak[tier] = std::max(now.peak[tier], before.peak[tier]);
  return now;
}

// The supervisor has read it already, so this fails only if somebody has changed it since.
std::optional<GivenPlan> given_plan(Session& session) {
  const std::string file = session.config.plan_path.data();
  if (file.empty()) return std::nullopt;
  auto given = load_given_plan(file);
  if (given) return *std::move(given);
  add_notice(session, "the run plans by itself: " + given.error().message);
  return std::nullopt;
}

}  // namespace

Result<PagerConfig> session_config(Session& session) {
  TRY(const RunPolicy policy, run_policy(session.config.policy.data()));
  PagerConfig config = pager_config(session.config);
  config.online = policy.without_plan->traits.online;
  config.keeps_copies = policy.without_plan->traits.keeps_copies;
  // The supervisor reports from the session however this process ends, so it is always up to date.
  config.on_progress = [&memory = session.state.memory, before = session.state.memory.load()](const auto& now) {
    memory.store(sum_of(before, now));
  };
  config.around_io = [&session](std::unique_ptr<BlockIo> io) {
    return std::make_unique<WatchedIo>(std::move(io), session.state.disk_waits);
  };
  config.disk_waits = config.journal.waits = &session.state.disk_waits;
  config.journal.on_stop = [&session](std::string_view sentence) { add_notice(session, sentence); };
  config.on_child_ended = [&session](std::string_view sentence) { add_notice(session, sentence); };
  // The supervisor prints it. Nothing else may run any more: threads wait for blocks that will never come.
  config.on_failure = [&session](std::string_view message) {
    session.state.error.set(message);
    ::_exit(1);
  };
  return config;
}

Result<std::unique_ptr<Planning>> session_planning(Session& session, Pager& pager) {
  session.state.journalled = pager.has_journal() ? 1 : 0;
  TRY(const RunPolicy policy, run_policy(session.config.policy.data()));
  if (!policy.plans() || !session.config.rates.are_known()) return nullptr;
  return std::make_unique<Planning>(pager, measured_machine(session.config), policy, given_plan(session));
}

Result<std::unique_ptr<TensorMemory>> start_paged_memory(Session& session) {
  TRY(PagerConfig config, session_config(session));
  TRY(std::unique_ptr<Pager> pager, Pager::start(std::move(config)));
  session.state.eviction_path = pager->cpu()->eviction_method();
  if (pager->cpu()->eviction_method() == EvictionMethod::copy)
    add_notice(session,
               "the copying path cannot see direct I/O: a script must not read files with O_DIRECT into tensors while "
               "memory is short (Linux 6.8 and newer can move pages instead)");
  TRY(auto planning, session_planning(session, *pager));
  return std::make_unique<PagedMemory>(std::move(pager), std::move(planning));
}

}  // namespace spillway
