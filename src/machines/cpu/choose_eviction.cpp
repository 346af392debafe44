#include "machines/cpu/choose_eviction.h"

#include <fmt/format.h>

#include <cstring>

#include "base/files.h"
#include "machines/cpu/userfault.h"
#include "machines/real/memory_range.h"

namespace spillway {
namespace {

// 0, or the errno of a real move there and back.
Result<int> try_move(Userfault& userfault) {
  TRY(MemoryRange range, MemoryRange::reserve(2));
  TRY_VOID(userfault.admit(range.begin(), range.bytes()));
  std::byte* here = range.block(0);
  std::byte* there = range.block(1);
  std::memset(here, 0x5a, kBlockBytes.value);
  if (const int error = userfault.move(there, here, kBlockBytes.value, std::chrono::milliseconds(10)); error != 0)
    return error;
  if (there[kBlockBytes.value - 1] != std::byte{0x5a}) return EIO;
  return userfault.move(here, there, kBlockBytes.value, std::chrono::milliseconds(10));
}

}  // namespace

std::string_view to_text(EvictionMethod method) {
  switch (method) {
    case EvictionMethod::automatic:
      return "automatic";
    case EvictionMethod::move:
      return "move";
    case EvictionMethod::copy:
      return "copy";
  }
  return "?";
}

Result<EvictionMethod> choose(EvictionMethod wanted) {
  TRY(Userfault userfault, Userfault::open());
  if (wanted == EvictionMethod::copy) return wanted;
  int error = EOPNOTSUPP;
  if (userfault.can_move()) {
    TRY(error, try_move(userfault));
  }
  if (error == 0) return EvictionMethod::move;
  if (wanted == EvictionMethod::automatic) return EvictionMethod::copy;
  return fail(Errc::unavailable,
              fmt::format("this kernel cannot move pages (UFFDIO_MOVE: {}); use Linux 6.8 or newer, or "
                          "'--eviction-path copy'",
                          userfault.can_move() ? errno_text(error) : "not offered"));
}

}  // namespace spillway
