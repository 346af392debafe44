#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/trace.h"
#include "trace/validate.h"

namespace spillway {

// Trace files, as docs/formats/trace.md defines them. What comes out of here is valid: later code relies on it and
// checks nothing again. `where` names the text in errors: a path, usually.

struct LoadedTrace {
  Trace trace;
  std::string hash;  // XXH3-128 of the uncompressed content, 32 hexadecimal digits: the identity of a trace
};

// Of the uncompressed content of a file.
std::string trace_hash(std::string_view content);

// Compressed or not is seen from the content, not from the name.
Result<LoadedTrace> load_trace(const std::string& path);
Result<LoadedTrace> parse_trace(std::string_view json, const std::string& where);

// One tensor or kernel a line, so that two traces can be compared by diff. Fails if a name is not UTF-8.
Result<std::string> to_json(const Trace& trace);

// Refuses an invalid trace. Compressed if the path ends in ".zst". The file appears whole or not at all.
Result<> save_trace(const std::string& path, const Trace& trace);

}  // namespace spillway
