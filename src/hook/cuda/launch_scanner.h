#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "hook/cuda/fair_mutex.h"
#include "hook/cuda/kernel_layout.h"
#include "hook/cuda/launch.h"
#include "hook/cuda/range_table.h"

namespace spillway {

struct CudaBytes {
  std::uint64_t address = 0, bytes = 0;
};

// Finds the registered ranges that launches touch. For any number of threads; ranges come and go meanwhile.
class LaunchScanner {
 public:
  using Touches = std::pmr::vector<CudaTouch>;
  // Asks the driver. A layout that is not known is asked for again at the next launch: the driver may have had its
  // reasons.
  using AskForLayout = KernelLayout (*)(CUfunc_st*);

  explicit LaunchScanner(AskForLayout ask) : ask_(ask) {}

  // As CudaShim's.
  bool add(const CudaRange& range);
  bool remove(std::uint64_t begin);

  // Appends what the kernel's arguments point to. False: there may be more.
  bool scan_kernel(CUfunc_st* function, const KernelArguments& arguments, Touches& touches);
  // All words of these arguments, whether they point into a range by now or not.
  bool copy_words(CUfunc_st* function, const KernelArguments& arguments, std::vector<std::uint64_t>& words);
  // Appends all ranges that share a byte with these.
  void scan_bytes(const CudaBytes& bytes, CudaAccess access, Touches& touches) const;
  // Appends those of these words that point into a range.
  void scan_words(std::span<const std::uint64_t> words, Touches& touches) const;
  // Functions were unloaded: others may get their handles.
  void forget_layouts();

 private:
  template <class F>
  bool visit(CUfunc_st* function, F visit_words);

  const AskForLayout ask_;
  mutable FairSharedMutex mutex_;
  RangeTable ranges_ SPILLWAY_GUARDED_BY(mutex_);
  std::unordered_map<CUfunc_st*, KernelLayout> layouts_ SPILLWAY_GUARDED_BY(mutex_);
  std::uint64_t unloads_ SPILLWAY_GUARDED_BY(mutex_) = 0;
};

}  // namespace spillway
