#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "journal/record.h"

struct ZSTD_DCtx_s;

namespace spillway {

// Reads a journal from its beginning, a record at a time, in bounded memory. Any bytes are records, an end or an error.
class JournalReader {
 public:
  // Fills the beginning of `room`; 0 at the end.
  using Source = std::function<Result<std::size_t>(std::span<char> room)>;

  // `name` is for errors. Fails when this is no journal of ours.
  static Result<JournalReader> open(Source source, std::string name);
  static Result<JournalReader> open_file(const std::string& path);
  static Result<JournalReader> open_bytes(std::string_view bytes, std::string name);  // which must outlive it

  // Nothing at the end. What a KernelReady's accesses show is valid until the next call. After an error there is no
  // more.
  Result<std::optional<Record>> next();
  // At the end: whether the last record was there in part only, as in a journal of a process that was killed.
  bool cut_off() const { return cut_off_; }
  // After the records that are wanted: whether what they came with has its checksum, which is read for that. Journals
  // of processes that were killed lack the last one.
  Result<> check_frame();

 private:
  JournalReader(Source source, std::string name);
  Result<bool> more();
  Result<std::optional<std::string_view>> next_bytes();

  Source source_;
  std::string name_;
  std::unique_ptr<ZSTD_DCtx_s, std::size_t (*)(ZSTD_DCtx_s*)> decompressor_;
  std::string compressed_, piece_;  // from the source; out of the decompressor
  std::size_t compressed_at_ = 0, compressed_size_ = 0;
  bool more_inside_ = false, inside_frame_ = false;
  std::string bytes_;  // decompressed
  std::size_t at_ = 0;
  bool cut_off_ = false;
  std::uint64_t records_ = 0;
  std::vector<BlockAccess> accesses_;
};

}  // namespace spillway
