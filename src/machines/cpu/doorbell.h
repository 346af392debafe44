#pragma once

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/files.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace spillway {

// Wakes a thread that waits for the descriptor to become readable. ring() is safe in any thread, at any time.
class Doorbell {
 public:
  static Result<Doorbell> make() {
    const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) return fail(Errc::unavailable, fmt::format("cannot make an eventfd: {}", errno_text(errno)));
    return Doorbell(out_of_reach(UniqueFd(fd)));
  }
  int fd() const { return fd_.get(); }
  void ring() const noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
  }
  void clear() const noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(fd_.get(), &count, sizeof count);
  }

 private:
  explicit Doorbell(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace spillway
