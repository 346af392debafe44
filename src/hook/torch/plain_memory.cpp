#include "hook/torch/plain_memory.h"

#include <cstdlib>

#include "base/text.h"

namespace spillway {

Result<void*> PlainMemory::allocate(const Newborn& tensor) {
  void* memory = nullptr;
  if (::posix_memalign(&memory, 64, tensor.bytes) == 0) return memory;
  return fail(Errc::out_of_memory,
              "the system has no " + to_text(Bytes{tensor.bytes}) + " of memory left for a tensor");
}

void PlainMemory::free(void* memory) { std::free(memory); }

}  // namespace spillway
