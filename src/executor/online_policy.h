#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "executor/machine.h"
#include "memory/page_table.h"

namespace spillway {

// What a kernel to come will use, as far as that is there by now.
using ExpectedUse = std::vector<BlockRange>;

// What comes after the kernel that is about to start, on its stream.
struct Forecast {
  bool anew = false;                   // what was said of the stream before is void; else its first kernel is this one
  std::vector<ExpectedUse> added;      // by the kernels that follow those which are known already: not to be victims
  std::vector<BlockRange> prefetches;  // in their order, behind what was asked for before
  Bytes births;                        // that the next few of all these will make, or that shall be free
};

// Looks at what a program does and says what it will do next. It decides, the executor brings it about. Used by one
// thread; knows no clock.
class OnlinePolicy {
 public:
  virtual ~OnlinePolicy() = default;
  virtual void allocated(const Allocated& event, const PageTable& table) = 0;
  virtual void freed(const Freed& event) = 0;
  // One block. Answers what to prefetch, behind what was asked for before.
  virtual std::vector<BlockRange> faulted(const Faulted& event, const PageTable& table) = 0;
  // `wanted`: false if somebody else decides for this kernel, and what is said is not used.
  virtual Forecast kernel_ready(const KernelReady& event, bool wanted) = 0;
  // true: kernels start at once and fault on what is away, even if a prefetch of it waits for its turn.
  virtual bool learns_from_faults_alone() const { return false; }
};

}  // namespace spillway
