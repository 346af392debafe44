#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace spillway {

inline constexpr std::size_t kPageBytes = 4096;
inline std::byte* page_of(std::byte* address) {
  return address - reinterpret_cast<std::uintptr_t>(address) % kPageBytes;
}

// The kernel's page faults, served in user space. Faults of system calls are included, always: with user-mode faults
// only, write(2) of an evicted tensor would fail.
//
// The calls that move pages return 0 or an errno and never allocate. All may be made from any thread.
class Userfault {
 public:
  struct Fault {
    std::byte* address = nullptr;
    pid_t thread = 0;
    bool write_protected = false;  // the page is there, but a write to it has to wait
    bool moved_away = false;       // no fault: somebody has given these pages other addresses (mremap)
  };

  // The error says what is missing and the remedy.
  static Result<Userfault> open();
  // One that another process has opened: its faults, its memory. It cannot move().
  static Userfault of(UniqueFd descriptor) { return Userfault(out_of_reach(std::move(descriptor)), false); }

  int fd() const { return fd_.get(); }
  bool can_move() const { return can_move_; }  // UFFDIO_MOVE: Linux 6.8

  // Reports accesses to absent pages of the range, and writes to protected ones.
  Result<> watch(std::byte* begin, std::size_t bytes);
  // Lets pages be moved into and out of the range; touching it is as touching any other memory.
  Result<> admit(std::byte* begin, std::size_t bytes);

  // Takes the faults that wait to be read, at most into.size(); 0 if there are none.
  std::size_t read(std::span<Fault> into) const;

  // Moves the pages atomically, to where there are none. Pages that the kernel holds for a moment are tried again until
  // `patience` is over; then all are back where they were and the result is EBUSY. Who waits for them goes on waiting,
  // until wake(). `came_back`: whether some had been moved and came back, whatever the result. Pages may lack where the
  // script has dropped them by madvise: such holes are zeroes as soon as they are touched. Elsewhere a hole is an
  // error, ENOENT.
  int move(std::byte* to, std::byte* from, std::size_t bytes, std::chrono::microseconds patience,
           bool* came_back = nullptr, bool may_have_holes = true) const;
  // Maps new pages with these contents. Who waits for them goes on waiting, until wake(). `protect`: as protect()
  // would, and nobody can write in between.
  int copy(std::byte* to, const std::byte* from, std::size_t bytes, bool protect = false) const;
  // Maps zeroes and wakes who waits for them.
  int zero(std::byte* at, std::size_t bytes) const;
  // From now on, writes wait; or (false) need not, but who waits goes on waiting, until wake().
  int protect(std::byte* at, std::size_t bytes, bool on) const;
  // Who waits for these pages looks again.
  int wake(std::byte* at, std::size_t bytes) const;

 private:
  enum class Returned : std::uint8_t { none, some, not_all };
  Returned return_uncounted(std::byte* to, std::byte* from, std::size_t bytes) const;

  Userfault(UniqueFd fd, bool can_move) : fd_(std::move(fd)), can_move_(can_move) {}

  UniqueFd fd_;
  bool can_move_;
};

}  // namespace spillway
