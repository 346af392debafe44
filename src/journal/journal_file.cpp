#include "journal/journal_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zstd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "journal/coder.h"
#include "journal/fields.h"
#include "machines/cpu/quiet_thread.h"

namespace spillway {
namespace {

// The fastest levels win little more here, and the slower ones cost the script's processors.
constexpr int kLevel = 1;
// An iteration's records look like those of the one before it, which may be so far back.
constexpr int kWindowLog = 21;
// A frame that has ended has a checksum.
constexpr std::size_t kFrameBytes = std::size_t{16} << 20;
constexpr std::chrono::milliseconds kLatest{50};
constexpr std::size_t kWorthWriting = std::size_t{1} << 20;
constexpr const char* kEndsEarly = "the journal ends early: ";

// What a bug of ours leaves behind is worth most: a CHECK that fails waits so long for the disk.
constexpr Nanos kLastPatience{500'000'000};
std::atomic<JournalFile*> last_started{nullptr};

void append_framed(std::string& to, std::string_view record) {
  Encoder encode(to);
  encode(record.size());
  to.append(record);
}

}  // namespace

JournalFile::JournalFile(JournalOptions options, UniqueFd fd)
    : options_(std::move(options)),
      fd_(std::move(fd)),
      compressor_(ZSTD_createCCtx(), [](ZSTD_CCtx_s* context) { ZSTD_freeCCtx(context); }) {
  if (!options_.write) options_.write = ::write;
}

Result<std::unique_ptr<JournalFile>> JournalFile::start(JournalOptions options) {
  const int raw = ::open(options.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (raw < 0)
    return fail(Errc::io, fmt::format("cannot write the journal {}: {}; name another folder with --record",
                                      options.path, errno_text(errno)));
  UniqueFd fd = out_of_reach(UniqueFd(raw));
  std::unique_ptr<JournalFile> file(new JournalFile(std::move(options), std::move(fd)));
  ZSTD_CCtx* compressor = file->compressor_.get();
  CHECK(compressor != nullptr);
  CHECK(ZSTD_isError(ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, kLevel)) == 0);
  CHECK(ZSTD_isError(ZSTD_CCtx_setParameter(compressor, ZSTD_c_windowLog, kWindowLog)) == 0);
  CHECK(ZSTD_isError(ZSTD_CCtx_setParameter(compressor, ZSTD_c_checksumFlag, 1)) == 0);
  if (auto begun = file->write_all(fmt::format("{}{}\n", kJournalMagic, kJournalVersion)); !begun) {
    ::unlink(file->options_.path.c_str());  // It would look like a journal.
    return std::unexpected(std::move(begun).error());
  }
  auto thread = quiet_thread("spillway-record", [self = file.get()] { self->run(); });
  if (!thread) {
    ::unlink(file->options_.path.c_str());
    return std::unexpected(std::move(thread).error());
  }
  file->thread_ = std::move(*thread);
  last_started = file.get();
  set_last_words([]() noexcept {
    if (JournalFile* journal = last_started) journal->flush_if_free(kLastPatience);
  });
  return file;
}

JournalFile::~JournalFile() {
  JournalFile* me = this;
  last_started.compare_exchange_strong(me, nullptr);
  {
    const MutexLock lock(mutex_);
    ends_ = true;
    news_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void JournalFile::append(std::string_view record) {
  std::string reason;
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    reason = why_no_room(record);
    if (!reason.empty()) {
      stop(reason);
    } else {
      const bool was_empty = pending_.empty();
      append_framed(pending_, record);
      has_begun_.store(true, std::memory_order_release);
      if (was_empty || pending_.size() >= kWorthWriting) news_.notify_one();
    }
  }
  if (!reason.empty() && options_.on_stop) options_.on_stop(kEndsEarly + reason);
}

// Empty: there is some.
std::string JournalFile::why_no_room(std::string_view record) const {
  if (record.size() > kMostRecordBytes.value)  // Readers take none that is larger.
    return fmt::format("a plan takes {}, and a record at most {}", to_text(Bytes{record.size()}),
                       to_text(kMostRecordBytes));
  // One may wait alone, however large: that is no fault of the disk.
  if (!pending_.empty() && pending_.size() + record.size() > options_.most_pending.value)
    return fmt::format("the disk is slower than the run: more than {} waited to be written",
                       to_text(options_.most_pending));
  return {};
}

void JournalFile::stop(const std::string& reason) {
  stopped_ = true;
  std::string record;
  Encoder encode(record);
  encode(Record{Stopped{reason}});
  append_framed(pending_, record);
  news_.notify_one();
}

void JournalFile::flush(Nanos patience) {
  const MutexLock lock(mutex_);
  wait_until_written(patience);
}

// The thread that failed may hold the lock; anybody else has it for a moment only.
void JournalFile::flush_if_free(Nanos patience) {
  const auto late = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience.value);
  while (!mutex_.try_lock()) {
    if (std::chrono::steady_clock::now() > late) return;
    std::this_thread::yield();
  }
  wait_until_written(patience);
  mutex_.unlock();
}

void JournalFile::wait_until_written(Nanos patience) {
  wanted_now_ = true;
  news_.notify_one();
  written_.wait_for(mutex_, std::chrono::nanoseconds(patience.value),
                    [&]() SPILLWAY_REQUIRES(mutex_) { return pending_.empty() && !busy_; });
}

void JournalFile::script_ended(Nanos patience) {
  {
    const MutexLock lock(mutex_);
    frames_end_ = true;
  }
  std::string record;
  Encoder encode(record);
  encode(Record{ScriptEnded{}});
  append(record);
  flush(patience);
}

void JournalFile::run() noexcept {
  std::string records;
  for (;;) {
    bool last = false, frame_ends = false;
    {
      const MutexLock lock(mutex_);
      busy_ = false;
      if (pending_.empty()) written_.notify_all();
      news_.wait(mutex_, [&]() SPILLWAY_REQUIRES(mutex_) { return !pending_.empty() || ends_; });
      // More will come, and is written at one go.
      news_.wait_for(mutex_, kLatest, [&]() SPILLWAY_REQUIRES(mutex_) {
        return ends_ || wanted_now_ || pending_.size() >= kWorthWriting;
      });
      wanted_now_ = false;
      last = ends_;
      frame_ends = ends_ || frames_end_;
      busy_ = true;
      records.clear();
      records.swap(pending_);
    }
    const Result<> done = compress_and_write(records, frame_ends);
    if (done && last) return;
    if (done) continue;
    const MutexLock lock(mutex_);
    const bool known = std::exchange(stopped_, true);
    pending_.clear();
    if (!known && options_.on_stop) {  // Whoever waits in flush() finds that it has been told.
      const MutexUnlock unlock(mutex_);
      options_.on_stop(kEndsEarly + done.error().message);
    }
    busy_ = false;
    written_.notify_all();
    return;
  }
}

Result<> JournalFile::compress_and_write(std::string_view records, bool frame_ends) {
  in_frame_ += records.size();
  frame_ends = frame_ends || in_frame_ >= kFrameBytes;
  if (frame_ends) in_frame_ = 0;
  compressed_.resize(ZSTD_CStreamOutSize());
  ZSTD_inBuffer in{records.data(), records.size(), 0};
  for (std::size_t rest = 1; rest != 0;) {
    ZSTD_outBuffer out{compressed_.data(), compressed_.size(), 0};
    rest = ZSTD_compressStream2(compressor_.get(), &out, &in, frame_ends ? ZSTD_e_end : ZSTD_e_flush);
    if (ZSTD_isError(rest) != 0)
      return fail(Errc::out_of_memory, fmt::format("cannot compress it: {}", ZSTD_getErrorName(rest)));
    TRY_VOID(write_all({compressed_.data(), out.pos}));
  }
  return {};
}

Result<> JournalFile::write_all(std::string_view bytes) {
  const DiskWait wait(options_.waits, WaitsFor::journal);
  while (!bytes.empty()) {
    const ssize_t written = options_.write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      return fail(Errc::io,
                  fmt::format("cannot write {}: {}", options_.path, errno_text(written < 0 ? errno : ENOSPC)));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace spillway
