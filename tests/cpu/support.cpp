#include "support.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/unique_fd.h"

namespace spillway {

std::uint64_t resident_bytes(const MemoryRange& range) {
  constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
  constexpr std::size_t kPage = 4096;
  const UniqueFd pagemap(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  std::vector<std::uint64_t> entries(512);
  std::uint64_t pages = 0;
  const std::uint64_t first = reinterpret_cast<std::uintptr_t>(range.begin()) / kPage;
  for (std::uint64_t at = 0; at < range.bytes() / kPage; at += entries.size()) {
    const auto offset = static_cast<off_t>((first + at) * sizeof(std::uint64_t));
    const std::size_t wanted = entries.size() * sizeof(std::uint64_t);
    CHECK(::pread(pagemap.get(), entries.data(), wanted, offset) == static_cast<ssize_t>(wanted));
    for (const std::uint64_t entry : entries) pages += (entry & kPresent) != 0;
  }
  return pages * kPage;
}

namespace {
std::uint64_t word(std::size_t index, std::uint64_t seed) {
  return (seed * 0x9E3779B97F4A7C15u) ^ (index * 0xBF58476D1CE4E5B9u);
}
}  // namespace

void fill(std::byte* at, std::size_t bytes, std::uint64_t seed) {
  auto* words = reinterpret_cast<std::uint64_t*>(at);
  for (std::size_t index = 0; index < bytes / sizeof *words; ++index) words[index] = word(index, seed);
}

bool holds(const std::byte* at, std::size_t bytes, std::uint64_t seed) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(at);
  for (std::size_t index = 0; index < bytes / sizeof *words; ++index)
    if (words[index] != word(index, seed)) return false;
  return true;
}

}  // namespace spillway
