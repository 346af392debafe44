#include "cli/record_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/files.h"
#include "cli/replaced_file.h"
#include "journal/journal_file.h"
#include "runtime/save_proposed.h"
#include "session/output_file.h"
#include "session/own_process.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

// The plan that was followed, with the trace that it names.
constexpr const char* kBlocksName = "blocks";

struct RecordedFile {
  std::string name;
  OutputKind kind;
};
std::array<RecordedFile, 4> recorded_files() {
  const ProposalFiles plan = plan_files(kBlocksName);
  return {{{kRecordedTraceName, OutputKind::trace},
           {kJournalName, OutputKind::journal},
           {plan.plan, OutputKind::plan},
           {plan.trace, OutputKind::trace}}};
}

// Whether it was made.
Result<bool> make(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error))
    return fail(Errc::bad_input, fmt::format("--record {}: it is no folder; name one", folder.string()));
  const bool made = !fs::is_directory(folder, error) && fs::create_directory(folder, error);
  if (error)
    return fail(Errc::io, fmt::format("--record {}: cannot make the folder: {}; name another, or make those above it "
                                      "first (mkdir -p)",
                                      folder.string(), error.message()));
  if (auto writable = check_output("--record", (folder / kRecordedTraceName).string()); !writable) {
    if (made) fs::remove(folder, error);
    return std::unexpected(std::move(writable).error());
  }
  for (const RecordedFile& file : recorded_files())
    TRY_VOID(check_replaced((folder / file.name).string(), file.kind, "--record"));
  return made;
}

}  // namespace

RecordFolder::~RecordFolder() {
  std::error_code not_empty;
  if (made_) fs::remove(path_, not_empty);
}

bool RecordFolder::takes(const fs::path& file) const {
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(fs::absolute(path_, error), error);
  const fs::path other = fs::weakly_canonical(file, error);
  return other == folder ||
         std::ranges::any_of(recorded_files(), [&](const RecordedFile& one) { return other == folder / one.name; });
}

Result<> RecordFolder::open(Nanos limit) {
  TRY(made_, in_own_process<bool>({.disk = path_.native(),
                                   .limit = limit,
                                   .if_late = "a file was to be made there on trial; check the disk, name another "
                                              "folder with --record, or allow more time with --io-timeout"},
                                  [&] { return make(path_); }));
  return lock();
}

Result<> RecordFolder::lock() {
  const int opened = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0)
    return fail(Errc::bad_input, fmt::format("--record {}: cannot open the folder: {}; name another", path_.string(),
                                             errno_text(errno)));
  UniqueFd folder(opened);
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)  // Some file systems lock no folders.
    return fail(Errc::bad_input, fmt::format("--record {}: another run is writing there; name another folder, or "
                                             "wait until it has ended",
                                             path_.string()));
  locked_ = std::move(folder);
  return {};
}

Result<std::string> RecordFolder::trace_file() const { return new_file(path_ / kRecordedTraceName); }
Result<std::string> RecordFolder::journal_file() const { return new_file(path_ / kJournalName); }

Result<std::string> RecordFolder::blocks() const {
  const ProposalFiles files = plan_files((path_ / kBlocksName).string());
  TRY_VOID(new_file(files.plan));
  TRY(const std::string trace, new_file(files.trace));
  return trace.substr(0, trace.rfind('.'));
}

Result<std::string> RecordFolder::new_file(const fs::path& path) const {
  TRY(std::string file, check_output("--record", path.string()));
  std::error_code none;
  if (fs::is_regular_file(file, none)) fs::remove(fs::canonical(file, none), none);  // Not a link to it.
  return file;
}

}  // namespace spillway
