#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_set>

#include "base/ids.h"
#include "base/mutex.h"
#include "journal/journal_file.h"

namespace spillway {

// Writes into a journal that has begun how a script calls its kernels, each once. Any thread.
class KernelNames {
 public:
  explicit KernelNames(JournalFile& file) : file_(file) {}  // which outlives it

  void name(ExecutionId execution, std::string_view name);

 private:
  // No more are named: a script may never do the same twice.
  static constexpr std::size_t kMost = std::size_t{1} << 17;

  JournalFile& file_;
  Mutex mutex_;  // a leaf
  std::unordered_set<ExecutionId> named_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway
