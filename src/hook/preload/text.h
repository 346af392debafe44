#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace spillway {

// A sentence put together without allocating: the process is somebody else's, and may be short of everything.
class Sentence {
 public:
  Sentence& operator<<(std::string_view part) noexcept {
    const std::size_t room = text_.size() - size_;
    const std::size_t taken = part.size() < room ? part.size() : room;
    if (taken > 0) std::memcpy(text_.data() + size_, part.data(), taken);
    size_ += taken;
    return *this;
  }
  std::string_view text() const noexcept { return {text_.data(), size_}; }

 private:
  std::array<char, 2048> text_{};
  std::size_t size_ = 0;
};

inline void write_line(std::string_view line) noexcept {
  Sentence whole;
  whole << "spillway: " << line << "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, whole.text().data(), whole.text().size());
}

}  // namespace spillway
