#include "cli/replay_journal.h"

#include <filesystem>

#include "cli/command.h"
#include "cli/replay_report.h"
#include "journal/journal_file.h"
#include "journal/replay.h"

namespace spillway {

namespace fs = std::filesystem;

Result<int> replay_journal(const std::string& journal_or_folder, std::size_t before, bool json) {
  std::error_code error;
  const std::string file = fs::is_directory(journal_or_folder, error)
                               ? (fs::path(journal_or_folder) / kJournalName).string()
                               : journal_or_folder;
  TRY(JournalReader journal, JournalReader::open_file(file));
  Result<Replay> done = replay(journal, {.before = before});
  if (!done) return fail(done.error().code, file + ": " + done.error().message);
  TRY_VOID(print(json ? replay_json(*done, file) : replay_table(*done, file)));
  if (done->equal()) return kSuccess;
  return fail(Errc::bad_input, replay_error(*done, file));
}

}  // namespace spillway
