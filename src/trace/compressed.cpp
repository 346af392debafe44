#include "trace/compressed.h"

#include <fmt/format.h>
#include <zstd.h>

#include <memory>

#include "base/check.h"
#include "base/files.h"
#include "base/text.h"

namespace spillway {
namespace {

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

}  // namespace

bool is_zstd(std::string_view content) { return content.starts_with("\x28\xb5\x2f\xfd"); }

Result<std::string> decompress_zstd(std::string_view content, Bytes limit, const std::string& where) {
  const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  CHECK(context != nullptr);
  std::string text;
  ZSTD_inBuffer in{content.data(), content.size(), 0};
  std::size_t missing = 0;  // an estimate of what the frame still needs; 0 at its end
  std::string piece(ZSTD_DStreamOutSize(), '\0');
  for (bool output_was_full = false; in.pos < in.size || output_was_full;) {
    // The declared size in a frame's header is not trusted: we grow by what really comes.
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    const std::size_t at = in.pos;
    missing = ZSTD_decompressStream(context.get(), &out, &in);
    text.append(piece, 0, out.pos);
    if (ZSTD_isError(missing) != 0)
      return fail(Errc::bad_input, fmt::format("cannot decompress {}: {} near byte {}; make the file again", where,
                                               ZSTD_getErrorName(missing), at));
    if (text.size() > limit.value)
      return fail(
          Errc::bad_input,
          fmt::format("cannot decompress {}: it holds more than {}, the most that is read; is it the file you meant?",
                      where, to_text(limit)));
    output_was_full = out.pos == piece.size() && missing != 0;
  }
  if (missing != 0)
    return fail(
        Errc::bad_input,
        fmt::format("cannot decompress {}: it ends after {} bytes within a zstd frame; it was cut off, copy or make "
                    "it again",
                    where, content.size()));
  return text;
}

Result<std::string> compress_zstd(std::string_view content) {
  std::string compressed(ZSTD_compressBound(content.size()), '\0');
  constexpr int kLevel = 9;  // traces are small and written once
  const std::size_t size = ZSTD_compress(compressed.data(), compressed.size(), content.data(), content.size(), kLevel);
  if (ZSTD_isError(size) != 0)
    return fail(Errc::out_of_memory,
                fmt::format("cannot compress {} bytes: {}", content.size(), ZSTD_getErrorName(size)));
  compressed.resize(size);
  return compressed;
}

Result<std::string> read_maybe_compressed(const std::string& path, Bytes limit) {
  TRY(std::string content, read_file(path, limit));
  if (is_zstd(content)) return decompress_zstd(content, limit, path);
  if (path.ends_with(".zst"))
    return fail(
        Errc::bad_input,
        fmt::format("cannot decompress {}: it does not begin as a zstd file does; make it again, or drop .zst from "
                    "its name if it is not compressed",
                    path));
  return content;
}

Result<> write_maybe_compressed(const std::string& path, std::string_view text) {
  if (!path.ends_with(".zst")) return write_file(path, text);
  TRY(const std::string compressed, compress_zstd(text));
  return write_file(path, compressed);
}

}  // namespace spillway
