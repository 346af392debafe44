#include "machines/real/memory_range.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "base/files.h"
#include "base/text.h"

namespace spillway {

Result<MemoryRange> MemoryRange::reserve(std::uint32_t blocks) {
  CHECK(blocks > 0);
  const std::size_t block = kBlockBytes.value;
  const std::size_t mapped = (std::size_t{blocks} + 1) * block;  // One more, to align the beginning.
  void* mapping = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return fail(Errc::unavailable, fmt::format("cannot reserve {} of addresses: {}; raise the limit on virtual memory "
                                               "(ulimit -v) or allow overcommit (vm.overcommit_memory)",
                                               to_text(Bytes{mapped}), errno_text(errno)));
  const auto address = reinterpret_cast<std::uintptr_t>(mapping);
  auto* begin = reinterpret_cast<std::byte*>((address + block - 1) / block * block);
  MemoryRange range(mapping, mapped, begin, blocks);
  // Without huge pages everything works, only slower.
  ::madvise(begin, range.bytes(), MADV_HUGEPAGE);
  if (::madvise(mapping, mapped, MADV_DONTFORK) != 0)
    return fail(Errc::unavailable,
                fmt::format("cannot keep managed memory out of forked processes: {}", errno_text(errno)));
  ::madvise(mapping, mapped, MADV_DONTDUMP);
  return range;
}

MemoryRange::~MemoryRange() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_);
}

}  // namespace spillway
