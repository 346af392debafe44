#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace spillway {

// "No such file or directory" for ENOENT, and so on.
std::string errno_text(int error_number);

// The whole content of a regular file of at most `limit` bytes.
Result<std::string> read_file(const std::string& path, Bytes limit);

// Whether it is an open file of this process (/dev/stdout, or a link to it): what is written there is added.
bool leads_to_descriptor(const std::string& path);

// Replaces the file in one step. What leads to a descriptor of this process (/dev/stdout) is written on.
// After a failure the old file is as it was, and nothing half-written is left, also if we are killed meanwhile (where
// the file system has files without names). It need not be on the disk yet.
Result<> write_file(const std::string& path, std::string_view content);

// What write_file() would find out before it writes the first byte, tried for real: root may write everywhere, and yet
// /proc and read-only file systems take no file. Nothing is left behind, and a file that is there stays as it is.
Result<> try_to_write(const std::string& path);

// What this process may put into one file (ulimit -f); a call that would put more there raises SIGXFSZ.
Bytes file_size_limit();

// To stderr, as far as somebody takes it: a full disk or a closed pipe there must change nothing else.
void tell(std::string_view text) noexcept;
// Whether that would not wait: a terminal can be stopped (Ctrl-S), and nobody may read a pipe that is full.
bool can_tell() noexcept;

// Tells "spillway: MESSAGE" and ends the process at once, with status 1 and without running anything of its own. Does
// not allocate.
[[noreturn]] void end_process(std::string_view message) noexcept;

}  // namespace spillway
