#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "executor/machine.h"
#include "executor/online_policy.h"
#include "journal/journal_reader.h"
#include "journal/ledger.h"
#include "memory/page_table.h"
#include "memory/tier.h"

namespace spillway {

// Sees a replay as it goes.
class ReplayObserver {
 public:
  virtual ~ReplayObserver() = default;
  // Before the executor sees it; `at` is the machine's time, and the table as the event before has left it. False:
  // nothing more is wanted, and the replay ends.
  virtual bool told(Nanos at, const Told& event, const PageTable& table) = 0;
  // The answer to that, once it is found to be what was recorded.
  virtual void asked(Nanos at, std::span<const Command> commands, const PageTable& table) = 0;
};

struct ReplayOptions {
  std::size_t before = 5;                // events to show of what led to a difference
  std::uint32_t most_blocks = 1u << 24;  // a journal with more is refused: 32 TiB of addresses
  // Called with a name out of the journal; null: what the table of policies has. For tests.
  std::function<std::unique_ptr<OnlinePolicy>(const std::string& name, Bytes device)> online = {};
  ReplayObserver* observer = nullptr;
};

// Something that entered the executor, in words.
struct ReplayedEvent {
  std::uint64_t event = 0;  // counted from 1; of a plan's adoption, the event before it
  Nanos at;                 // since the first event
  std::uint64_t iterations = 0;
  std::string what;
};

// Where the decision code did otherwise than the journal says.
struct Difference {
  ReplayedEvent moment;
  std::vector<std::string> recorded{}, replayed{};  // commands, in words
  std::size_t first = 0;              // the first that differs; of the shorter list it is one past the end
  std::vector<ReplayedEvent> before;  // the latest last
};

// What a journal says, and what the decision code did now. Everything is as of the journal's end, or of the difference.
struct Replay {
  enum class End : std::uint8_t {
    script_ended,  // by itself
    failed,        // nothing could be served any more
    stopped,       // the journal says why it ends; the run went on
    open,          // nothing says so: the process was ended from outside or by a bug, or it still runs
    difference,
    damaged,  // what follows cannot be read
  };
  End end = End::open;
  std::string why;       // for stopped, failed and damaged
  bool cut_off = false;  // the last record is there in part only

  std::string version, online;
  std::uint64_t events = 0, commands = 0, plans = 0, iterations = 0;
  Nanos time;  // from the first event to the last one
  std::optional<Difference> difference;
  std::vector<std::string> unconfirmed;  // commands on the last event, of which the journal does not tell any more

  PerTier<Bytes> capacity, used, peak;
  PerLink<Bytes> moved;
  std::uint64_t tensors = 0, skipped_commands = 0;
  std::vector<Ledger::Flight> flights;  // moves that were not answered, the oldest first
  std::vector<std::string> waiting;     // streams that wait, in words
  std::vector<ReplayedEvent> last;      // what happened last, the latest last

  // Every command was as recorded, and the journal could be read to its end.
  bool equal() const { return end != End::difference && end != End::damaged; }
};

// Runs the decision code on what the journal says that it was told. Fails only when there is no beginning to begin
// with.
Result<Replay> replay(JournalReader& journal, const ReplayOptions& options = {});

}  // namespace spillway
