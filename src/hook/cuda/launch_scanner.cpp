#include "hook/cuda/launch_scanner.h"

#include <algorithm>
#include <utility>

namespace spillway {

bool LaunchScanner::add(const CudaRange& range) {
  const MutexLock lock(mutex_);
  return ranges_.add(range);
}

bool LaunchScanner::remove(std::uint64_t begin) {
  const MutexLock lock(mutex_);
  return ranges_.remove(begin);
}

// Calls visit_words(layout, ranges_) with mutex_ held for reading.
template <class F>
bool LaunchScanner::visit(CUfunc_st* function, F visit_words) {
  std::uint64_t unloads = 0;
  {
    const SharedLock lock(mutex_);
    const auto known = layouts_.find(function);
    if (known != layouts_.end()) return visit_words(known->second, ranges_);
    unloads = unloads_;
  }
  KernelLayout layout = ask_(function);
  const MutexLock lock(mutex_);
  const bool is_complete = visit_words(layout, ranges_);
  if (layout.is_known && unloads == unloads_) layouts_.try_emplace(function, std::move(layout));
  return is_complete;
}

bool LaunchScanner::scan_kernel(CUfunc_st* function, const KernelArguments& arguments, Touches& touches) {
  return visit(function, [&](const KernelLayout& layout, const RangeTable& ranges) {
    return for_each_word(layout, arguments, [&](std::uint64_t word) {
      if (const CudaRange* range = ranges.find(word)) touches.emplace_back(word, range->id, CudaAccess::read_or_write);
    });
  });
}

bool LaunchScanner::copy_words(CUfunc_st* function, const KernelArguments& arguments,
                               std::vector<std::uint64_t>& words) {
  return visit(function, [&](const KernelLayout& layout, const RangeTable&) {
    return for_each_word(layout, arguments, [&](std::uint64_t word) { words.push_back(word); });
  });
}

void LaunchScanner::scan_bytes(const CudaBytes& bytes, CudaAccess access, Touches& touches) const {
  const SharedLock lock(mutex_);
  ranges_.for_each_in(bytes.address, bytes.bytes, [&](const CudaRange& range) {
    touches.emplace_back(std::max(range.begin, bytes.address), range.id, access);
  });
}

void LaunchScanner::scan_words(std::span<const std::uint64_t> words, Touches& touches) const {
  const SharedLock lock(mutex_);
  for (const std::uint64_t word : words)
    if (const CudaRange* range = ranges_.find(word)) touches.emplace_back(word, range->id, CudaAccess::read_or_write);
}

void LaunchScanner::forget_layouts() {
  const MutexLock lock(mutex_);
  layouts_.clear();
  ++unloads_;
}

}  // namespace spillway
