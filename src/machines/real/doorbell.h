#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace spillway {

inline constexpr std::string_view kDescriptorsClosed =
    "page faults can be served no longer, since the script has closed descriptors that are not its own (os.closerange, "
    "a daemon's start); let it close only what it has opened";

// Wakes a thread that waits for the descriptor to become readable. ring() is safe in any thread, at any time.
class Doorbell {
 public:
  // `lost` is called by whoever rings once the script has closed the descriptor, so that nobody waits for ever; it does
  // not return.
  using Lost = std::function<void(std::string_view)>;
  static Result<Doorbell> make(Lost lost = {}) {
    const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) return fail(Errc::unavailable, fmt::format("cannot make an eventfd: {}", errno_text(errno)));
    return Doorbell(out_of_reach(UniqueFd(fd)), std::move(lost));
  }
  int fd() const { return fd_.get(); }
  bool is_lost() const noexcept { return ::fcntl(fd_.get(), F_GETFD) < 0; }
  void ring() const noexcept {
    const std::uint64_t one = 1;
    // EAGAIN: it has been rung 2^64 - 2 times, and will wake.
    if (::write(fd_.get(), &one, sizeof one) < 0 && errno != EAGAIN && lost_) lost_(kDescriptorsClosed);
  }
  void clear() const noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(fd_.get(), &count, sizeof count);
  }

 private:
  Doorbell(UniqueFd fd, Lost lost) : fd_(std::move(fd)), lost_(std::move(lost)) {}
  UniqueFd fd_;
  Lost lost_;
};

}  // namespace spillway
