#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "hook/torch/pytorch.h"

namespace spillway {

// What we know of one operator.
struct Operator {
  std::string name;                                          // "aten::add_.Tensor"
  enum class Use : std::uint8_t { reads, writes, updates };  // updates: reads and writes
  struct Argument {
    Use use = Use::reads;
    bool sparse = false;
    bool statistic = false;  // a running one, which the call updates: its results do not depend on it
  };
  std::vector<Argument> arguments;
  // batch_norm and instance_norm write their running statistics, which their schemas do not say, if this argument is
  // true.
  int writes_statistics_if = -1;
  std::vector<int> statistics;
  bool ignored = false;     // no part of an iteration: `item`, and what a DataLoader does between batches
  bool fills_new = false;   // works in memory that it allocates, though it is ignored
  bool copies = false;      // copy_, which does nothing where both tensors are the same bytes
  bool replayable = false;  // from the same bytes it makes the same ones, in new memory; statistics apart
  bool only_looks = false;  // it makes views of its arguments; where it must copy, it calls an operator that does

  // Seen in a call of it. Any thread reads and sets it, by std::atomic_ref.
  mutable bool calls_others = false;
  mutable bool used_too_much = false;  // it has been named for that

  std::string schema_name;  // as RecordFunction::name() gives it
};

// The operators seen so far. Any thread.
class Operators {
 public:
  // Null for a call without a schema (autograd's own nodes, Python functions): it is no operator, those inside it are.
  const Operator* find(const at::RecordFunction& call);

 private:
  const Operator* find_or_describe(const at::RecordFunction& call);

  SharedMutex mutex_;
  // They stay, since running kernels refer to them.
  std::deque<Operator> described_ SPILLWAY_GUARDED_BY(mutex_);
  // By the address of the schema's name, since asking a call for its schema copies it.
  std::unordered_map<const char*, const Operator*> known_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway
