#include "hook/torch/dry_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/text.h"

namespace spillway {

Result<std::unique_ptr<DryMemory>> DryMemory::reserve() {
  // As much as there may be, of 128 TiB that a process has; a limit (ulimit -v) may leave less.
  for (Bytes size = 65536_GiB; size >= 1024_GiB; size = Bytes{size.value / 2}) {
    void* begin = ::mmap(nullptr, size.value, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin != MAP_FAILED) return std::unique_ptr<DryMemory>(new DryMemory(static_cast<std::byte*>(begin), size));
  }
  return fail(Errc::unavailable, std::string("a dry run wants 1 TiB of addresses, none of which becomes memory: ") +
                                     std::strerror(errno) + "; raise the limit of address space (ulimit -v unlimited)");
}

Result<void*> DryMemory::allocate(const Newborn& tensor) {
  const MutexLock lock(mutex_);
  const auto offset = space_.take(Bytes{tensor.bytes});
  if (!offset)
    return fail(Errc::out_of_memory, "a dry run has " + to_text(size_) + " of addresses, and no " +
                                         to_text(Bytes{tensor.bytes}) + " of them are left for a tensor");
  void* memory = begin_ + *offset;
  alive_.emplace(memory, Bytes{tensor.bytes});
  return memory;
}

void DryMemory::free(void* memory) {
  const MutexLock lock(mutex_);
  const auto dead = alive_.find(memory);
  CHECK(dead != alive_.end());
  space_.give_back(static_cast<std::uint64_t>(static_cast<std::byte*>(memory) - begin_), dead->second);
  alive_.erase(dead);
}

bool DryMemory::contains(const void* memory) const { return memory >= begin_ && memory < begin_ + size_.value; }

}  // namespace spillway
