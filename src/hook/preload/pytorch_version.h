#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "hook/preload/text.h"

namespace spillway {

// The version of a loaded PyTorch, read from beside its libraries; its C++ interface has no function that says so.
class PyTorchVersion {
 public:
  // `library` is the path of its libc10.so: .../torch/lib/libc10.so.
  explicit PyTorchVersion(std::string_view library) noexcept {
    const auto end = library.rfind('/');
    if (end == std::string_view::npos) return;
    const std::string_view folder(library.data(), end);
    if (read(folder, "/../version.py"))
      cut_after("__version__ = '", "'");  // a Python package
    else if (read(folder, "/../build-version"))
      cut_after("", "\n");  // the C++ distribution
  }
  // "2.13.0+cu130", or empty if nothing says it.
  std::string_view full() const noexcept { return version_; }
  // "2.13.0": the local part says for which GPU it was built, which the CPU's interface does not depend on.
  std::string_view release() const noexcept { return before("+", version_); }

 private:
  bool read(std::string_view folder, std::string_view name) noexcept {
    Sentence path;
    path << folder << name << std::string_view("\0", 1);
    if (path.text().back() != '\0') return false;  // It was cut.
    const int fd = ::open(path.text().data(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t got = ::read(fd, content_.data(), content_.size());
    ::close(fd);
    version_ = {content_.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
    return true;
  }
  void cut_after(std::string_view start, std::string_view end) noexcept {
    const auto place = version_.find(start);
    if (place == std::string_view::npos)
      version_ = {};
    else
      version_.remove_prefix(place + start.size());
    version_ = before(end, version_);
  }
  // string_view::substr would need the C++ library, for its exception.
  static std::string_view before(std::string_view end, std::string_view text) noexcept {
    const auto place = text.find(end);
    return place == std::string_view::npos ? text : std::string_view(text.data(), place);
  }

  std::array<char, 1024> content_{};
  std::string_view version_;
};

}  // namespace spillway
