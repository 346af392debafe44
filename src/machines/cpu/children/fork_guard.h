#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "base/unique_fd.h"
#include "machines/cpu/userfault.h"

namespace spillway {

// What a process with managed memory does about a fork, on the thread that forks.
struct ForkPort {
  // The child's end of a socket to who will serve its faults (forked_children.h); nothing if nobody will.
  std::function<std::optional<UniqueFd>()> before;
  std::function<void()> after;
  std::function<bool()> in_child;  // there: whether it will be served
};

// What happens in a forked child of a process with managed memory: that memory is not there (MADV_DONTFORK). The child
// maps the range anew and asks to be served, as its own children do; the other descriptors are closed, so that it keeps
// neither the spill file nor the kernel's objects alive. If nobody serves it, a child that touches a managed tensor is
// told why and dies.
class ForkGuard {
 public:
  ForkGuard(std::byte* begin, std::size_t bytes, std::vector<int> descriptors, ForkPort port);
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;

  // True in children only.
  bool in_child() const { return in_child_.load(std::memory_order_relaxed); }
  bool is_served() const { return faults_.has_value(); }

 private:
  friend struct ForkGuards;
  void become_child();
  bool is_served_anew();

  std::byte* begin_;
  std::size_t bytes_;
  std::vector<int> descriptors_;
  ForkPort port_;
  std::atomic<bool> in_child_{false};
  // The next three are of the thread that forks, under a lock, and of the child.
  bool has_range_ = true;           // false: a child in which something else lies there
  std::optional<UniqueFd> server_;  // from before the fork; children keep it, for theirs
  std::optional<Userfault> faults_;
};

}  // namespace spillway
