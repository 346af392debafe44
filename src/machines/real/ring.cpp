#include "machines/real/ring.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "base/unique_fd.h"

namespace spillway {
namespace {

constexpr std::uint64_t kBell = UINT64_MAX, kNews = UINT64_MAX - 1;

std::string remedy(int error) {
  switch (error) {
    case ENOSYS:
      return "use a kernel with io_uring (Linux 6.1 or newer), in a container a seccomp profile that allows it";
    case EPERM:
      return "allow it with 'sudo sysctl kernel.io_uring_disabled=0', in a container by a seccomp profile that allows "
             "io_uring_setup, io_uring_enter and io_uring_register";
    case ENOMEM:
      return "raise the limit on locked memory (ulimit -l)";
    default:
      return "see 'man io_uring_setup'";
  }
}

void drop_front(std::vector<iovec>& parts, std::size_t bytes) {
  auto part = parts.begin();
  for (; part != parts.end() && bytes >= part->iov_len; ++part) bytes -= part->iov_len;
  if (part != parts.end()) *part = {static_cast<std::byte*>(part->iov_base) + bytes, part->iov_len - bytes};
  CHECK(part != parts.end() || bytes == 0);
  parts.erase(parts.begin(), part);
}

}  // namespace

Result<std::unique_ptr<Ring>> Ring::open(int file, const Doorbell& bell, std::optional<int> news,
                                         std::initializer_list<int> kept_open) {
  std::unique_ptr<Ring> ring(new Ring(bell, news));
  if (const int error = -::io_uring_queue_init(2 * kDepth, &ring->ring_, 0); error != 0)
    return fail(Errc::unavailable, fmt::format("cannot use io_uring: {}; {}", errno_text(error), remedy(error)));
  ring->open_ = true;
  if (const int error = -::io_uring_ring_dontfork(&ring->ring_); error != 0)
    return fail(Errc::unavailable, fmt::format("cannot keep io_uring out of forked processes: {}", errno_text(error)));
  // When the process has gone, the kernel gives them up in one order or the other, and closes what it gave up last
  // first (delayed_fput).
  std::vector<int> files{file};
  files.insert(files.end(), kept_open);
  files.push_back(file);
  if (const int error = -::io_uring_register_files(&ring->ring_, files.data(), static_cast<unsigned>(files.size()));
      error > 0)
    return fail(Errc::unavailable, fmt::format("cannot register files with io_uring: {}", errno_text(error)));
  UniqueFd high = out_of_reach(UniqueFd(ring->ring_.ring_fd));
  ring->ring_.ring_fd = ring->ring_.enter_ring_fd = high.release();
  return ring;
}

Ring::~Ring() {
  if (!open_) return;
  ::io_uring_unregister_files(&ring_);  // Closed now: the rest goes when a thread of the kernel's comes to it.
  ::io_uring_queue_exit(&ring_);
}

void Ring::start(const Transfer& transfer) {
  CHECK(transfer.memory != nullptr && transfer.bytes > 0);
  const auto free = std::ranges::find(active_, false, &Active::in_use);
  CHECK(free != active_.end());
  free->transfer = transfer;
  free->rest = {{transfer.memory, transfer.bytes}};
  for (std::byte* memory : transfer.more) free->rest.push_back({memory, transfer.bytes});
  free->offset = transfer.offset;
  free->in_use = true;
  prepare(static_cast<std::uint32_t>(free - active_.begin()));
}

void Ring::prepare(std::uint32_t place) {
  io_uring_sqe* sqe = ::io_uring_get_sqe(&ring_);
  CHECK(sqe != nullptr);  // Twice as many entries as transfers, and each wait() submits all.
  const Active& active = active_[place];
  const auto parts = static_cast<unsigned>(active.rest.size());
  constexpr int kFile = 0;  // its place among the registered ones
  if (active.transfer.write)
    ::io_uring_prep_writev(sqe, kFile, active.rest.data(), parts, active.offset);
  else
    ::io_uring_prep_readv(sqe, kFile, active.rest.data(), parts, active.offset);
  ::io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
  ::io_uring_sqe_set_data64(sqe, place);
}

void Ring::listen() {
  const auto listen_to = [&](int descriptor, std::uint64_t name, bool& listening) {
    if (std::exchange(listening, true)) return;
    io_uring_sqe* sqe = ::io_uring_get_sqe(&ring_);
    CHECK(sqe != nullptr);
    ::io_uring_prep_poll_add(sqe, descriptor, POLLIN);
    ::io_uring_sqe_set_data64(sqe, name);
  };
  listen_to(bell_.fd(), kBell, listening_);
  if (news_) listen_to(*news_, kNews, listening_to_news_);
}

void Ring::take(const io_uring_cqe& cqe, std::vector<Completion>& ended) {
  if (cqe.user_data == kBell || cqe.user_data == kNews) is_deaf_ |= cqe.res == -EBADF;
  if (cqe.user_data == kBell) {
    listening_ = false;
    bell_.clear();
    return;
  }
  if (cqe.user_data == kNews) {
    listening_to_news_ = false;
    return;
  }
  CHECK(cqe.user_data < active_.size() && active_[cqe.user_data].in_use);
  Active& active = active_[cqe.user_data];
  const auto place = static_cast<std::uint32_t>(cqe.user_data);
  if (cqe.res == -EINTR || cqe.res == -EAGAIN) return prepare(place);
  if (cqe.res > 0) {
    active.offset += static_cast<std::uint64_t>(cqe.res);
    drop_front(active.rest, static_cast<std::size_t>(cqe.res));
    if (!active.rest.empty()) return prepare(place);
  }
  const int error = cqe.res > 0 ? 0 : cqe.res < 0 ? -cqe.res : EIO;  // Nothing at all: the file ends too early.
  ended.push_back({active.transfer.id, error});
  active.in_use = false;
}

Result<> Ring::wait(std::vector<Completion>& ended, std::optional<std::chrono::microseconds> timeout) {
  listen();
  io_uring_cqe* first = nullptr;
  int status = 0;
  if (timeout && timeout->count() == 0) {
    status = ::io_uring_submit(&ring_);
    // Completions may wait for us to enter the kernel.
    if (::io_uring_peek_cqe(&ring_, &first) != 0) first = nullptr;
  } else if (timeout) {
    __kernel_timespec time{timeout->count() / 1'000'000, timeout->count() % 1'000'000 * 1000};
    status = ::io_uring_submit_and_wait_timeout(&ring_, &first, 1, &time, nullptr);
  } else {
    status = ::io_uring_submit_and_wait(&ring_, 1);
  }
  if (status < 0 && status != -ETIME && status != -EINTR && status != -EAGAIN && status != -EBUSY)
    return fail(Errc::io, status == -EBADF ? std::string(kDescriptorsClosed)
                                           : fmt::format("io_uring failed: {}", errno_text(-status)));
  unsigned head = 0, count = 0;
  io_uring_cqe* cqe = nullptr;
  io_uring_for_each_cqe(&ring_, head, cqe) {
    const io_uring_cqe copy = *cqe;
    ++count;
    take(copy, ended);
  }
  ::io_uring_cq_advance(&ring_, count);
  if (is_deaf_) return fail(Errc::io, std::string(kDescriptorsClosed));
  return {};
}

}  // namespace spillway
