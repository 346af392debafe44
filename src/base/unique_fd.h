#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace spillway {

// Either owns an open descriptor or is moved-from; never "maybe open".
class UniqueFd {
 public:
  explicit UniqueFd(int fd) noexcept : fd_(fd) { CHECK(fd >= 0); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// The same file under a number so high that nobody will soon get it, should the program that we are a guest of close
// descriptors that are not its own: what it opens next must not be taken for ours. Unchanged if no such number is free.
inline UniqueFd out_of_reach(UniqueFd fd) noexcept {
  constexpr rlim_t kHigh = 1 << 16;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return fd;
  const auto most = static_cast<int>(std::min(limit.rlim_cur, kHigh));
  const int high = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, most - most / 16);
  return high < 0 ? std::move(fd) : UniqueFd(high);
}

}  // namespace spillway
