#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace spillway {

// No trace is larger than this, uncompressed: a million kernels take about 200 MiB. With the bound on accesses in the
// reader it bounds what a small hostile file can make us hold.
inline constexpr Bytes kMostTraceBytes = 256_MiB;

bool is_zstd(std::string_view content);

// All frames of `content`, which must end with the last of them.
Result<std::string> decompress_zstd(std::string_view content, Bytes limit, const std::string& where);
Result<std::string> compress_zstd(std::string_view content);

// The text in a file, decompressed where needed.
Result<std::string> read_maybe_compressed(const std::string& path, Bytes limit);
// As write_file(); compressed if the path ends in ".zst".
Result<> write_maybe_compressed(const std::string& path, std::string_view text);

}  // namespace spillway
