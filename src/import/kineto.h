#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spillway {

// When something happened, in nanoseconds of the profiler's clock.
struct KinetoSpan {
  std::int64_t begin = 0, end = 0;
};

// An operator, or a part of the script that has a name, as the host ran it.
struct KinetoOperator {
  std::string name;
  std::uint64_t id = 0;                        // "External id"
  std::optional<std::uint64_t> function = {};  // "Record function id": the execution trace's rf_id
  std::int64_t thread = 0;
  KinetoSpan time = {};
};

// A call of the CUDA runtime, by the number that what it launches has, too.
struct KinetoLaunch {
  std::uint64_t correlation = 0;
  std::int64_t thread = 0, at = 0;
};

struct KinetoKernel {
  std::uint64_t correlation = 0;
  KinetoSpan time = {};
};

// Memory that the allocator gave (bytes > 0) or got back (bytes < 0).
struct KinetoMemory {
  std::uint64_t address = 0;
  std::int64_t bytes = 0, at = 0;
  bool host = false;
  std::int64_t device = 0;   // which GPU, if not the host
  std::string made_by = {};  // the line of the script that asked for it, if that is known
};

// What PyTorch's profiler exports as a Chrome trace (prof.export_chrome_trace, of Kineto).
struct Kineto {
  std::vector<KinetoOperator> operators = {};
  std::vector<KinetoLaunch> launches = {};
  std::vector<KinetoKernel> kernels = {};
  std::vector<KinetoMemory> memory = {};
  std::int64_t base = 0;       // nanoseconds of Unix time at the clock's 0
  std::string snapshot = {};   // the file that `memory` is from, if it is not the profile
  std::string estimated = {};  // as Trace::estimated; only files that we wrote say it
};

Result<Kineto> parse_kineto(std::string_view json, const std::string& where);

}  // namespace spillway
