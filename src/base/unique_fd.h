#pragma once

#include <unistd.h>

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

 private:
  int fd_;
};

}  // namespace spillway
