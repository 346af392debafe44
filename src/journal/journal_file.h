#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "machines/real/disk_wait.h"

struct ZSTD_CCtx_s;

namespace spillway {

inline constexpr std::string_view kJournalMagic = "spillway-journal ";
inline constexpr unsigned kJournalVersion = 9;
inline constexpr const char* kJournalName = "run.journal";  // in the folder of `spillway run --record`
inline constexpr Bytes kMostRecordBytes = 8_MiB;

struct JournalOptions {
  std::string path = {};  // of the file; an old one there is lost
  // Told once, on any thread that must not touch managed memory: why the journal ends before the run does.
  std::function<void(std::string_view)> on_stop = {};
  Bytes most_pending = kMostRecordBytes;  // what may wait for the disk
  DiskWaits* waits = nullptr;             // says so while the disk has a write
  // Stands where the file's write(2) does; for tests.
  std::function<ssize_t(int fd, const void* data, std::size_t size)> write = {};
};

// A file of records that grows while a program runs. Whoever appends never waits for the disk: a thread of its own
// compresses and writes, a twentieth of a second later at most, and what it has written is complete in itself whenever
// the process ends; a CHECK that fails waits for it. When the disk is too slow or full, the journal says that it stops,
// and the program goes on.
class JournalFile {
 public:
  static Result<std::unique_ptr<JournalFile>> start(JournalOptions options);
  ~JournalFile();  // Writes what is left, as flush() does.
  JournalFile(const JournalFile&) = delete;

  // Any thread, even one that serves page faults: takes memory (malloc), and for a moment a lock that is held by nobody
  // who could fault or block.
  void append(std::string_view record);
  // Returns when all that was appended is in the file, or after `patience`.
  void flush(Nanos patience);
  // The same, when the script has ended by itself. From then on all that is written has its checksum at once.
  void script_ended(Nanos patience);

  // Something has been appended: a journal's first record is its beginning.
  bool has_begun() const { return has_begun_.load(std::memory_order_acquire); }

  int descriptor() const { return fd_.get(); }

 private:
  JournalFile(JournalOptions options, UniqueFd fd);
  void run() noexcept;
  void flush_if_free(Nanos patience);
  void wait_until_written(Nanos patience) SPILLWAY_REQUIRES(mutex_);
  std::string why_no_room(std::string_view record) const SPILLWAY_REQUIRES(mutex_);
  void stop(const std::string& reason) SPILLWAY_REQUIRES(mutex_);
  Result<> compress_and_write(std::string_view records, bool frame_ends) SPILLWAY_EXCLUDES(mutex_);
  Result<> write_all(std::string_view bytes) SPILLWAY_EXCLUDES(mutex_);

  JournalOptions options_;
  UniqueFd fd_;
  std::unique_ptr<ZSTD_CCtx_s, void (*)(ZSTD_CCtx_s*)> compressor_;  // the thread's, like the next two
  std::string compressed_;
  std::size_t in_frame_ = 0;

  std::atomic<bool> has_begun_{false};
  Mutex mutex_;  // a leaf
  Condition news_, written_;
  std::string pending_ SPILLWAY_GUARDED_BY(mutex_);
  bool stopped_ SPILLWAY_GUARDED_BY(mutex_) = false;
  bool ends_ SPILLWAY_GUARDED_BY(mutex_) = false;
  bool wanted_now_ SPILLWAY_GUARDED_BY(mutex_) = false;
  bool busy_ SPILLWAY_GUARDED_BY(mutex_) = false;        // the thread writes
  bool frames_end_ SPILLWAY_GUARDED_BY(mutex_) = false;  // with each write: it may be the last
  std::thread thread_;
};

}  // namespace spillway
