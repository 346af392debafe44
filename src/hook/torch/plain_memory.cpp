#include "hook/torch/plain_memory.h"

#include <cstdlib>

#include "base/text.h"

namespace spillway {

Result<void*> PlainMemory::allocate(std::size_t bytes, std::optional<std::uint64_t>) {
  void* memory = nullptr;
  if (::posix_memalign(&memory, 64, bytes) == 0) return memory;
  return fail(Errc::out_of_memory, "the system has no " + to_text(Bytes{bytes}) + " of memory left for a tensor");
}

void PlainMemory::free(void* memory) { std::free(memory); }

}  // namespace spillway
