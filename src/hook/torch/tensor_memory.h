#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "journal/iteration_ended.h"
#include "recorder/iteration.h"
#include "runtime/block_traffic.h"
#include "runtime/byte_extent.h"
#include "runtime/run_figures.h"
#include "runtime/run_plan.h"

struct CUstream_st;

namespace spillway {

class Planning;

// Where PyTorch's tensors live: the seam between the hook and what holds the budget. Any thread may call any of these.
class TensorMemory {
 public:
  virtual ~TensorMemory() = default;

  // 64-byte aligned, of a GPU 512, contents undefined. The failure says which tier is short by how much.
  struct Newborn {
    std::size_t bytes = 0;
    std::optional<std::uint64_t> place{};  // where a plan wants it, if it can be there
    TensorLabel label{};
    CUstream_st* stream = nullptr;  // of a GPU: on which its kernels run
  };
  virtual Result<void*> allocate(const Newborn& tensor) = 0;
  virtual void free(void* memory) = 0;
  // Of a GPU: that stream uses it, too.
  virtual void record_stream(void*, CUstream_st*) {}
  // Whether this memory lies in what we manage, and a forked child therefore must not free it.
  virtual bool contains(const void* memory) const = 0;
  // All that we manage, now and later.
  virtual std::span<std::byte> range() const = 0;
  // Whether more was alive at some time than the device holds: something must leave it, sooner or later.
  virtual bool is_short() const { return false; }
  // The most blocks in which tensors have lived at a time.
  virtual std::uint32_t most_blocks() const { return 0; }
  // In a forked child: whether it may touch what it has of its parent's.
  virtual bool is_served() const { return false; }

  // The calling thread's next kernel uses these bytes, and has ended.
  virtual void kernel_ready(const NextKernel& kernel, std::span<const ByteExtent> extents) = 0;
  // Of a GPU: its number in times_on_device(), if it launched something.
  virtual std::optional<std::uint32_t> kernel_done() = 0;
  // Of a GPU: times_on_device() will be asked for.
  virtual void measure_times() {}
  // Of a GPU: how long the device took, of the kernels between the last two calls; none of which it is not known.
  // Nothing: the host's times are those.
  virtual std::optional<std::vector<KernelTime>> times_on_device() { return std::nullopt; }

  // Of this memory so far, whoever lived in it.
  virtual MovedBytes moved(const void*, Bytes) const { return {}; }
  virtual void iteration_ended(const IterationEnded&) {}
  // The script is about to end by itself.
  virtual void script_ends() {}

  // Null: nothing is planned here.
  virtual Planning* planning() { return nullptr; }

  // The time up to `now` in which any thread waited for memory.
  virtual Nanos stalled(Nanos now) const = 0;
  virtual MemoryFigures figures() const = 0;  // so far
  // So often a block came in pieces, since a kernel that uses more than the device came back to it.
  virtual std::uint64_t splits() const { return 0; }
};

}  // namespace spillway
