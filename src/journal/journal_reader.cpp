#include "journal/journal_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "base/unique_fd.h"
#include "journal/coder.h"
#include "journal/fields.h"
#include "journal/journal_file.h"

namespace spillway {
namespace {

constexpr std::size_t kPiece = std::size_t{128} << 10;
constexpr int kMostWindowLog = 23;  // Frames that need more memory are not ours.

}  // namespace

JournalReader::JournalReader(Source source, std::string name)
    : source_(std::move(source)),
      name_(std::move(name)),
      decompressor_(ZSTD_createDCtx(), ZSTD_freeDCtx),
      compressed_(kPiece, '\0'),
      piece_(kPiece, '\0') {
  CHECK(decompressor_ != nullptr);
  CHECK(ZSTD_isError(ZSTD_DCtx_setParameter(decompressor_.get(), ZSTD_d_windowLogMax, kMostWindowLog)) == 0);
}

Result<JournalReader> JournalReader::open(Source source, std::string name) {
  JournalReader reader(std::move(source), std::move(name));
  // The first line is not compressed.
  while (reader.compressed_size_ < reader.compressed_.size()) {
    TRY(const std::size_t got, reader.source_(std::span(reader.compressed_).subspan(reader.compressed_size_)));
    if (got == 0) break;
    reader.compressed_size_ += got;
  }
  const std::string_view begin{reader.compressed_.data(), reader.compressed_size_};
  const std::size_t line_end = begin.substr(0, 64).find('\n');
  if (!begin.starts_with(kJournalMagic) || line_end == std::string_view::npos)
    return fail(Errc::bad_input,
                fmt::format("{} is no journal: it does not begin with '{}'; `spillway run --record DIR` "
                            "writes DIR/run.journal",
                            reader.name_, kJournalMagic));
  const std::string_view digits = begin.substr(kJournalMagic.size(), line_end - kJournalMagic.size());
  unsigned version = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), version);
  if (error != std::errc{} || end != digits.data() + digits.size() || version != kJournalVersion)
    return fail(Errc::bad_input, fmt::format("{} is a journal of version '{}', and this program reads version {}; use "
                                             "the spillway that recorded it",
                                             reader.name_, digits, kJournalVersion));
  reader.compressed_at_ = line_end + 1;
  return reader;
}

Result<JournalReader> JournalReader::open_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return fail(Errc::io, fmt::format("cannot read {}: {}{}", path, errno_text(errno),
                                      errno == ENOENT ? "; `spillway run --record DIR` writes DIR/run.journal" : ""));
  auto file = std::make_shared<UniqueFd>(fd);  // Shared, since a std::function is copyable.
  return open(
      [file, path](std::span<char> room) -> Result<std::size_t> {
        const ssize_t got = ::read(file->get(), room.data(), room.size());
        if (got < 0) return fail(Errc::io, fmt::format("cannot read {}: {}", path, errno_text(errno)));
        return static_cast<std::size_t>(got);
      },
      path);
}

Result<JournalReader> JournalReader::open_bytes(std::string_view bytes, std::string name) {
  return open(
      [bytes](std::span<char> room) mutable -> Result<std::size_t> {
        const std::size_t got = bytes.copy(room.data(), room.size());
        bytes.remove_prefix(got);
        return got;
      },
      std::move(name));
}

// False at the end.
Result<bool> JournalReader::more() {
  bytes_.erase(0, std::exchange(at_, 0));
  for (;;) {
    if (compressed_at_ == compressed_size_ && !more_inside_) {
      TRY(compressed_size_, source_(compressed_));
      compressed_at_ = 0;
      if (compressed_size_ == 0) return false;
    }
    ZSTD_inBuffer in{compressed_.data(), compressed_size_, compressed_at_};
    ZSTD_outBuffer out{piece_.data(), piece_.size(), 0};
    const std::size_t rest = ZSTD_decompressStream(decompressor_.get(), &out, &in);
    bytes_.append(piece_, 0, out.pos);
    compressed_at_ = in.pos;
    inside_frame_ = rest != 0;
    // The decompressor holds what did not fit, whether there is more input or not.
    more_inside_ = out.pos == piece_.size();
    if (ZSTD_isError(rest) != 0)
      return fail(Errc::bad_input,
                  fmt::format("{} is damaged after record {}: {}", name_, records_, ZSTD_getErrorName(rest)));
    if (out.pos > 0) return true;
  }
}

Result<> JournalReader::check_frame() {
  for (bool there = true; there && inside_frame_;) {
    at_ = bytes_.size();
    TRY(there, more());
  }
  return {};
}

Result<std::optional<std::string_view>> JournalReader::next_bytes() {
  for (;;) {
    const std::string_view rest = std::string_view(bytes_).substr(at_);
    constexpr std::size_t kMostLengthBytes = 10;
    const auto length_end =
        std::ranges::find_if(rest.substr(0, kMostLengthBytes), [](char c) { return (c & 0x80) == 0; });
    if (const auto length_size = static_cast<std::size_t>(length_end - rest.begin()) + 1; length_size <= rest.size()) {
      std::uint64_t length = 0;
      Decoder decoder(rest.substr(0, length_size), accesses_);
      decoder(length);
      if (decoder.failed() || length > kMostRecordBytes.value)
        return fail(Errc::bad_input, fmt::format("{} is damaged: record {} is too long", name_, records_ + 1));
      if (rest.size() - length_size >= length) {
        at_ += length_size + length;
        return rest.substr(length_size, length);
      }
    }
    TRY(const bool got, more());
    if (got) continue;
    cut_off_ = at_ < bytes_.size();
    return std::nullopt;
  }
}

Result<std::optional<Record>> JournalReader::next() {
  TRY(const std::optional<std::string_view> bytes, next_bytes());
  if (!bytes) return std::nullopt;
  ++records_;
  std::optional<Record> record(std::in_place);
  Decoder decoder(*bytes, accesses_);
  decoder(*record);
  if (decoder.failed() || !decoder.at_end())
    return fail(Errc::bad_input, fmt::format("{} is damaged: record {} is none", name_, records_));
  return record;
}

}  // namespace spillway
