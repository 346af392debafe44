// The disk, from and to pinned memory.
#include <fcntl.h>
#include <fmt/format.h>
#include <liburing.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/unique_fd.h"
#include "parts.h"

namespace spillway::probe {
namespace {

constexpr std::size_t kBlock = 2 << 20;
constexpr unsigned kDepth = 16;
constexpr std::size_t kFile = std::size_t{4} << 30;
constexpr double kSeconds = 4;

[[noreturn]] void give_up(const char* what, int error) {
  end(1, fmt::format("failed to {}: {}", what, std::strerror(error)));
}

// So many transfers at a time for some seconds; of every two, one reads and one writes if both are asked for. All go to
// the first `bytes` of the file. Says how much of it is written.
std::size_t measure(int file, char* memory, std::size_t bytes, bool reads, bool writes, const char* what) {
  io_uring ring{};
  if (const int error = ::io_uring_queue_init(kDepth, &ring, 0); error != 0) give_up("open io_uring", -error);
  std::size_t started = 0, done = 0;
  const auto start = [&](unsigned place) {
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring);
    const bool write = writes && (!reads || started % 2 == 0);
    const std::size_t offset = started * kBlock % bytes;
    char* const at = memory + place * kBlock;
    if (write)
      ::io_uring_prep_write(entry, file, at, kBlock, offset);
    else
      ::io_uring_prep_read(entry, file, at, kBlock, offset);
    ::io_uring_sqe_set_data64(entry, place);
    ++started;
  };
  const auto begin = Clock::now();
  for (unsigned place = 0; place < kDepth; ++place) start(place);
  while (done < started) {
    ::io_uring_submit(&ring);
    io_uring_cqe* ended = nullptr;
    if (const int error = ::io_uring_wait_cqe(&ring, &ended); error != 0) give_up("wait for the disk", -error);
    if (ended->res != static_cast<int>(kBlock)) give_up("transfer a block", ended->res < 0 ? -ended->res : EIO);
    const auto place = static_cast<unsigned>(::io_uring_cqe_get_data64(ended));
    ::io_uring_cqe_seen(&ring, ended);
    ++done;
    if (seconds_since(begin) < kSeconds) start(place);
  }
  Samples rate;
  rate.add(static_cast<double>(done * kBlock) / seconds_since(begin) / 1e9);
  tell(what, "GB/s", rate);
  ::io_uring_queue_exit(&ring);
  return std::min(bytes, done * kBlock);
}

}  // namespace

void disk(const Context& context) {
  const Gpu& gpu = context.gpu;
  struct statfs system{};
  if (::statfs(context.disk.c_str(), &system) != 0) give_up(("look at " + context.disk).c_str(), errno);
  tell("type of the file system", fmt::format("{:#x}", static_cast<unsigned long>(system.f_type)));
  if (system.f_type == TMPFS_MAGIC) end(1, context.disk + " is memory, not a disk; name another with --disk");
  std::string name = context.disk + "/spillway-probe-XXXXXX";
  const int file = ::mkostemp(name.data(), O_DIRECT | O_CLOEXEC);
  if (file < 0) give_up(("make a file in " + context.disk).c_str(), errno);
  const UniqueFd owned(file);
  ::unlink(name.c_str());
  if (const int error = ::posix_fallocate(file, 0, kFile); error != 0) give_up("get 4 GiB of disk", error);
  auto* const memory = static_cast<char*>(gpu.pinned(kBlock * kDepth));
  std::memset(memory, 1, kBlock * kDepth);
  // What was never written is read without the disk.
  const std::size_t written = measure(file, memory, kFile, false, true, "writes from pinned memory, first time");
  measure(file, memory, written, false, true, "writes from pinned memory");
  measure(file, memory, written, true, false, "reads into pinned memory");
  measure(file, memory, written, true, true, "reads and writes, together");
}

}  // namespace spillway::probe
