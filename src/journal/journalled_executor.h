#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "journal/journal_file.h"
#include "memory/page_table.h"

namespace spillway {

// The executor as a run uses it: everything that enters it passes here, and is journalled with all that it answers.
// Whoever holds only this cannot tell the executor anything that a replay would not know of. Used by one thread.
class JournalledExecutor {
 public:
  // Which policy's online part decides where no plan does.
  struct Online {
    std::unique_ptr<OnlinePolicy> (*make)(Bytes device) = nullptr;  // null: none
    Bytes device;
  };
  struct Journal {
    JournalFile* file = nullptr;                     // null: nothing is written; outlives us
    std::function<std::uint64_t()> iterations = {};  // of the script, that have ended
  };

  JournalledExecutor(PageTable table, const ExecutorOptions& options, Online online, Journal journal);

  void adopt(const Plan& plan, std::uint32_t kernel_count, const Executor::Iteration& iteration);
  // Replaces what is in `out` by what the machine shall do. Times must not go backwards.
  void on(const Stamped& event, std::vector<Command>& out);

  const std::optional<Failure>& failure() const { return executor_.failure(); }

 private:
  PageTable write_beginning(PageTable table, const ExecutorOptions& options, Online online);
  template <class Kind, class... T>
  void write(const T&... fields_of_record);

  Journal journal_;
  std::string record_;
  Nanos last_;
  Executor executor_;
};

}  // namespace spillway
