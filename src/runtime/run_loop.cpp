#include "runtime/run_loop.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "journal/journal_observer.h"
#include "machines/cpu/quiet_thread.h"
#include "runtime/memory_figures.h"

namespace spillway {
namespace {

// As many bytes whatever the blocks' size.
std::uint32_t blocks_in_move(const RealMachine& machine) {
  const std::uint64_t blocks = (kBlockBytes * MigrationOptions{}.chunk_blocks).value / machine.block_bytes().value;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(blocks, 1, machine.most_in_move()));
}

}  // namespace

Result<> RunLoop::start() {
  CHECK(!thread_.joinable());
  TRY(thread_, quiet_thread("spillway-loop", [this] { run(); }));
  return {};
}

RunLoop::~RunLoop() { end(); }

void RunLoop::end() {
  if (!thread_.joinable()) return;
  device_.machine().stop();
  thread_.join();
}

void RunLoop::run() noexcept {
  RealMachine& machine = device_.machine();
  machine.run_loop_is(::gettid());
  PageTable table = device_.empty_table();
  ExecutorOptions options;
  options.migration.keeps_copies = config_.keeps_copies;
  options.migration.keep_dead_blocks = true;
  options.migration.splits_blocks = machine.has_pieces();
  if (!machine.has_pieces()) options.window_blocks = machine.device_blocks();
  options.migration.host_keeps_copies = machine.copies_to_host();
  options.migration.chunk_blocks = blocks_in_move(machine);
  // With so many planned blocks in flight on a link no more moves are started: one waits behind another, so that the
  // disk has work while blocks are mapped, and no more, since what is in flight keeps its turn. A small device, whose
  // moves are smaller, has a quarter of its blocks.
  options.migration.planned_in_flight = std::clamp(machine.device_blocks() / 4, 1u, options.migration.chunk_blocks + 1);
  std::vector<Observer*> observers = observers_;
  std::optional<JournalObserver> journal;
  if (journal_ != nullptr) {
    const JournalObserver::Beginnings beginnings{table, options, config_.online, config_.device};
    observers.push_back(&journal.emplace(*journal_, beginnings, [&machine] { return machine.told_late(); }));
  }
  ObservedExecutor executor(std::move(table), options, config_.online ? config_.online(config_.device, {}) : nullptr,
                            std::move(observers));
  std::vector<Command> commands;
  for (;;) {
    const auto event = machine.wait();
    if (!event && machine.stopped()) return;
    if (!event) return fail_for_good(event.error().message);
    executor.on(*event, commands);
    if (const auto& failure = executor.executor().failure()) return fail_for_good(device_.explain(*failure));
    machine.submit(commands);
    if (config_.on_progress && !machine.has_events()) config_.on_progress(figures_of(machine));
  }
}

void RunLoop::fail_for_good(const std::string& message) noexcept {
  if (config_.on_progress) config_.on_progress(figures_of(device_.machine()));
  if (journal_ != nullptr) journal_->flush(kJournalPatience);
  config_.on_failure(message);
}

}  // namespace spillway
