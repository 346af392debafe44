#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

namespace spillway {

// What happens to a forked child of a process with managed memory: the memory is not there (MADV_DONTFORK), nobody
// serves its faults, and the descriptors are closed, so that it keeps neither the spill file nor the kernel's objects
// alive. A child that touches a managed tensor is told why and dies.
class ForkGuard {
 public:
  ForkGuard(const std::byte* begin, std::size_t bytes, std::vector<int> descriptors);
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;

  // True in children only.
  bool in_child() const { return in_child_.load(std::memory_order_relaxed); }

 private:
  friend struct ForkGuards;
  const std::byte* begin_;
  std::size_t bytes_;
  std::vector<int> descriptors_;
  std::atomic<bool> in_child_{false};
};

}  // namespace spillway
