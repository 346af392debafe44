#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analysis/lifetimes.h"
#include "executor/machine.h"
#include "machines/sim/flash.h"
#include "machines/sim/layout.h"
#include "trace/trace.h"

namespace spillway {

// One pass through a trace's kernels.
struct IterationRecord {
  Nanos begin, end;
  std::uint64_t stalled_kernels = 0;
  Nanos waited;              // that kernels were ready and had not begun to compute
  Nanos hidden;              // so long something moved while a kernel computed
  std::uint64_t faults = 0;  // blocks that a kernel touched while they were on a lower tier
  FlashWork flash = {};      // so far
};

// A program that the machine plays, iteration after iteration. Its tensors and kernels have ids from `first_tensor` and
// `first_kernel` on, so that those of several programs differ.
struct SimJob {
  const Trace& trace;
  const Lifetimes& lifetimes;
  Layout layout;  // its tensors in the machine's blocks
  std::uint32_t first_tensor = 0, first_kernel = 0;
  double weight = 1;             // its part of the device while others compute, too
  Nanos arrival = {};            // its tensors that outlive iterations are made when they are used first
  std::uint32_t iterations = 0;  // then it leaves; 0: the caller begins each
};

// Where a job is.
struct SimProgram {
  enum class Step : std::uint8_t { away, gap, ready, touching, computing, over };

  SimJob job;
  StreamId stream;
  Step step = Step::over;
  std::uint32_t kernel = 0;
  std::uint32_t serial = 0;  // of the current kernel's launch
  Nanos deadline;            // of the gap, or of the arrival
  double work = 0;           // nanoseconds that the kernel still computes, were it alone
  Nanos ready_at;
  std::vector<BlockAccess> accesses = {};  // of the current kernel
  std::size_t access = 0;                  // the next block to touch, as access and place in it
  std::uint32_t in_access = 0;
  std::uint32_t in_block = 0;  // as piece, of a split one
  struct Announced {
    BlockId block;
    Nanos handling;            // its part of the time that its service takes
    bool pays_latency = true;  // the first of its service on its way
  };
  std::vector<Announced> announced = {};  // reported as absent and not arrived yet
  std::vector<IterationRecord> iterations = {};
  std::vector<Nanos> waits = {};   // by kernel: after it was ready, the last time
  std::vector<Nanos> hidden = {};  // by kernel: so long something moved while it computed, the last time
  Bytes on_device, peak;           // of its blocks

  const Kernel& current() const { return job.trace.kernels[kernel]; }
  bool has_announced(BlockId block) const {
    return std::ranges::find(announced, block, &Announced::block) != announced.end();
  }
  KernelId kernel_id() const { return {job.first_kernel + kernel}; }
};

}  // namespace spillway
