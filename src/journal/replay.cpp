#include "journal/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string_view>
#include <utility>
#include <variant>

#include "base/text.h"
#include "executor/executor.h"
#include "journal/coder.h"
#include "journal/fields.h"
#include "journal/iteration_ends.h"
#include "journal/text_of.h"
#include "policies/policies.h"

namespace spillway {
namespace {

Result<std::unique_ptr<OnlinePolicy>> online_of(const Beginning& beginning, const ReplayOptions& options) {
  if (beginning.online.empty()) return nullptr;
  if (options.online) return options.online(beginning.online, beginning.online_device);
  if (const auto policy = policy_by_name(beginning.online); policy && policy->traits.online != nullptr)
    return policy->traits.online(beginning.online_device, {});
  return fail(
      Errc::bad_input,
      fmt::format("the run was decided by the policy '{}', which looks ahead in no way that this program knows; "
                  "use the spillway that recorded it, version {}",
                  beginning.online, beginning.version));
}

// What equal values have in common, and others have not.
template <class T>
std::string bytes_of(const T& value) {
  std::string bytes;
  Encoder encode(bytes);
  encode(value);
  return bytes;
}

// The state of one replay.
class Run {
 public:
  Run(const Beginning& beginning, std::unique_ptr<OnlinePolicy> online, const ReplayOptions& options)
      : options_(options),
        executor_(page_table(beginning), beginning.options, std::move(online)),
        ledger_(executor_.table().block_count(), beginning.options.kernels_fault) {
    replay_.version = beginning.version;
    replay_.online = beginning.online;
    replay_.capacity = beginning.capacity;
  }

  // False when this was the last.
  Result<bool> take(Record& record);
  // What the last event led to is compared with what was recorded of it; nothing may have been.
  bool compare(const Asked& recorded);
  bool answered() const { return answered_; }
  Replay finish(Replay::End end, std::string why);

 private:
  Result<bool> take(Beginning&) { return fail(Errc::bad_input, "a second beginning"); }
  Result<bool> take(Told& told);
  Result<bool> take(Asked& asked);
  Result<bool> take(Stopped& stopped);
  Result<bool> take(ScriptEnded&);
  Result<bool> take(Named&) { return true; }
  Result<bool> take(IterationEnded& ended);
  void remember(ReplayedEvent moment);
  std::string waiting_text(StreamId stream, const Ledger::Kernel& kernel) const;

  const ReplayOptions& options_;
  Replay replay_;
  Executor executor_;
  Ledger ledger_;
  IterationEnds ends_;
  std::vector<Command> commands_;  // that the last event led to
  bool answered_ = true;           // the journal's answer to the last event has been compared
  std::optional<Nanos> first_;
  Nanos at_;  // as the machine's clock has it
  std::deque<ReplayedEvent> before_;
};

Result<bool> Run::take(Record& record) {
  // An event that led to nothing has no answer in the journal; nor has, maybe, the last one of a journal that stops.
  // That the script or an iteration of it has ended, and how it calls a kernel, is another thread's word, and may stand
  // between an event and its answer.
  if (std::holds_alternative<Told>(record) && !answered_ && !compare({})) return false;
  return std::visit([&](auto& what) { return take(what); }, record);
}

void Run::remember(ReplayedEvent moment) {
  before_.push_back(std::move(moment));
  if (before_.size() > options_.before + 1) before_.pop_front();
}

Result<bool> Run::take(Told& told) {
  const Nanos next = at_ + told.since_last;
  if (next < at_) return fail(Errc::bad_input, "time goes backwards");
  at_ = next;
  if (!first_) first_ = at_;
  ++replay_.events;
  replay_.time = at_ - *first_;
  replay_.plans += std::holds_alternative<Adopted>(told.event);
  if (const auto good = ledger_.told(told.event, at_); !good)
    return fail(Errc::bad_input, fmt::format("event {}, '{}', cannot be: {}", replay_.events, text_of(told.event),
                                             good.error().message));
  remember({replay_.events, replay_.time, ends_.before(excess(at_, told.ago)), text_of(told.event)});
  if (options_.observer != nullptr && !options_.observer->told(at_, told, executor_.table())) return false;
  commands_.clear();
  executor_.on(told.event, commands_);
  answered_ = false;
  return true;
}

Result<bool> Run::take(Asked& asked) {
  if (answered_) return fail(Errc::bad_input, "commands that no event led to");
  return compare(asked) && !asked.failure;
}

Result<bool> Run::take(Stopped& stopped) {
  replay_.end = Replay::End::stopped;
  replay_.why = std::move(stopped.reason);
  return false;
}

Result<bool> Run::take(ScriptEnded&) {
  replay_.end = Replay::End::script_ended;
  return true;
}

Result<bool> Run::take(IterationEnded& ended) {
  if (!ends_.take(ended)) return fail(Errc::bad_input, "an iteration ends before an earlier one");
  replay_.iterations = ends_.count();
  return true;
}

bool Run::compare(const Asked& recorded) {
  answered_ = true;
  for (const Command& command : commands_) ledger_.asked(command, at_);
  const auto [differs, replayed] = std::ranges::mismatch(
      recorded.commands, commands_, [](const Command& a, const Command& b) { return bytes_of(a) == bytes_of(b); });
  const bool same = differs == recorded.commands.end() && replayed == commands_.end() &&
                    bytes_of(recorded.failure) == bytes_of(executor_.failure());
  if (same) {
    replay_.commands += commands_.size();
    if (options_.observer != nullptr) options_.observer->asked(at_, commands_, executor_.table());
    if (recorded.failure) {
      replay_.end = Replay::End::failed;
      replay_.why = text_of(*recorded.failure);
    }
    return true;
  }
  Difference difference{.moment = before_.back(),
                        .first = static_cast<std::size_t>(differs - recorded.commands.begin()),
                        .before = {before_.begin(), before_.end() - 1}};
  const auto put_into_words = [](const std::vector<Command>& commands, const std::optional<Failure>& failure) {
    std::vector<std::string> words;
    for (const Command& command : commands) words.push_back(text_of(command));
    if (failure) words.push_back(text_of(*failure));
    return words;
  };
  difference.recorded = put_into_words(recorded.commands, recorded.failure);
  difference.replayed = put_into_words(commands_, executor_.failure());
  replay_.commands += difference.first;
  replay_.difference = std::move(difference);
  replay_.end = Replay::End::difference;
  return false;
}

std::string Run::waiting_text(StreamId stream, const Ledger::Kernel& kernel) const {
  const std::string name = kernel.kernel == kNoKernel ? "a kernel" : fmt::format("kernel {}", kernel.kernel.value);
  return fmt::format("stream {} has waited for {} to start {}", stream.value, to_text(at_ - kernel.since), name);
}

Replay Run::finish(Replay::End end, std::string why) {
  if (replay_.end == Replay::End::open || end == Replay::End::damaged) {
    replay_.end = end;
    replay_.why = std::move(why);
  }
  if (!answered_)
    for (const Command& command : commands_) replay_.unconfirmed.push_back(text_of(command));
  const PageTable& table = executor_.table();
  for (const Tier tier : kTiers) {
    replay_.used[tier] = table.used(tier);
    replay_.peak[tier] = table.peak(tier);
  }
  replay_.moved = executor_.moved();
  replay_.tensors = ledger_.tensors();
  replay_.skipped_commands = executor_.skipped_commands();
  for (const auto& [id, flight] : ledger_.flights()) replay_.flights.push_back(flight);
  std::ranges::stable_sort(replay_.flights, {}, &Ledger::Flight::since);
  for (Ledger::Flight& flight : replay_.flights) flight.since = flight.since - first_.value_or(Nanos{});
  for (const auto& [launch, kernel] : ledger_.kernels())
    if (!kernel.launched) replay_.waiting.push_back(waiting_text(launch.stream, kernel));
  for (const auto& [stream, fault] : ledger_.faults())
    if (!table.contains(fault.blocks) || !on_device(table.state(fault.blocks.first)))
      replay_.waiting.push_back(fmt::format("stream {} has waited {} for {}, on which it faulted", stream.value,
                                            to_text(at_ - fault.since), text_of(fault.blocks)));
  replay_.last.assign(before_.begin(), before_.end());
  return std::move(replay_);
}

}  // namespace

Result<Replay> replay(JournalReader& journal, const ReplayOptions& options) {
  TRY(std::optional<Record> first, journal.next());
  const Beginning* beginning = first ? std::get_if<Beginning>(&*first) : nullptr;
  if (beginning == nullptr)
    return fail(Errc::bad_input, "the journal does not say what the run began with: it ended before, or is damaged");
  if (const auto good = check(*beginning, options.most_blocks); !good)
    return fail(Errc::bad_input, "the journal's run cannot begin: " + good.error().message);
  TRY(std::unique_ptr<OnlinePolicy> online, online_of(*beginning, options));
  Run run(*beginning, std::move(online), options);
  for (;;) {
    Result<std::optional<Record>> record = journal.next();
    if (!record) return run.finish(Replay::End::damaged, std::move(record.error().message));
    if (!*record) break;
    const Result<bool> goes_on = run.take(**record);
    if (!goes_on) return run.finish(Replay::End::damaged, "the journal is damaged: " + goes_on.error().message);
    if (*goes_on) continue;
    Replay done = run.finish(Replay::End::open, {});
    if (const auto whole = journal.check_frame(); !whole && whole.error().code == Errc::bad_input) {
      done.difference.reset();  // It is not what the run has written.
      done.end = Replay::End::damaged;
      done.why = whole.error().message;
    }
    return done;
  }
  Replay done = run.finish(Replay::End::open, {});
  done.cut_off = journal.cut_off();
  return done;
}

}  // namespace spillway
