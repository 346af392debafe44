#include "machines/cpu/children/forked_children.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/files.h"
#include "machines/cpu/quiet_thread.h"

namespace spillway {
namespace {

enum class Source : std::uint32_t { socket, faults, process };
std::uint64_t name(Source source, std::uint32_t number) {
  return std::uint64_t{static_cast<std::uint32_t>(source)} << 32 | number;
}

constexpr std::size_t kDescriptors = 2;  // that a child sends: its userfaultfd and its pidfd

union Control {
  char bytes[CMSG_SPACE(kDescriptors * sizeof(int))];
  cmsghdr aligned;
};

msghdr header(iovec& data, Control& control) {
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  return message;
}

bool send(int socket, pid_t sender, const std::array<int, kDescriptors>& descriptors) {
  iovec data{&sender, sizeof sender};
  Control control{};
  msghdr message = header(data, control);
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(part), descriptors.data(), sizeof descriptors);
  ssize_t sent;
  do sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == sizeof sender;
}

}  // namespace

Result<Userfault> ask_to_be_served(int socket, std::byte* begin, std::size_t bytes) {
  TRY(Userfault faults, Userfault::open());
  TRY_VOID(faults.watch(begin, bytes));
  const auto process = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  if (process < 0) return fail(Errc::unavailable, fmt::format("pidfd_open: {}", errno_text(errno)));
  const UniqueFd closed_at_end(process);
  if (!send(socket, ::getpid(), {faults.fd(), process}))
    return fail(Errc::unavailable, fmt::format("the parent cannot be told: {}", errno_text(errno)));
  return faults;
}

Result<ForkedChildren> ForkedChildren::make() {
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  if (poll < 0) return fail(Errc::unavailable, fmt::format("cannot make an epoll descriptor: {}", errno_text(errno)));
  return ForkedChildren(out_of_reach(UniqueFd(poll)));
}

bool ForkedChildren::listen(int descriptor, std::uint64_t name) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = name;
  return ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

// Closing alone would not do where another process has the same open file.
void ForkedChildren::forget(int descriptor) { ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }

bool ForkedChildren::expect(UniqueFd socket, SnapshotId snapshot) {
  ++last_;
  if (!listen(socket.get(), name(Source::socket, last_))) return false;
  sockets_.emplace(last_, Socket{std::move(socket), snapshot});
  return true;
}

const ForkedChildren::Child* ForkedChildren::find(ChildId child) const {
  const auto found = children_.find(child.value);
  return found == children_.end() ? nullptr : &found->second;
}

void ForkedChildren::abandon() {
  sockets_.clear();
  children_.clear();
}

ForkedChildren::Children::iterator ForkedChildren::drop(Children::iterator child, const LetGo& let_go) {
  forget(child->second.faults.fd());
  forget(child->second.process.get());
  const SnapshotId snapshot = child->second.snapshot;
  const auto next = children_.erase(child);
  let_go(snapshot);
  return next;
}

void ForkedChildren::drop_ended(const LetGo& let_go) {
  // Below all that programs use, above what the kernel refuses at once: the answer tells one that is there (ENOENT)
  // from one that is not.
  auto* nowhere = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20);
  for (auto child = children_.begin(); child != children_.end();)
    child = child->second.faults.zero(nowhere, kPageBytes) == ESRCH ? drop(child, let_go) : std::next(child);
}

void ForkedChildren::collect(const LetGo& hold, const Serve& serve, const LetGo& let_go) {
  std::array<epoll_event, 32> events;
  const int count = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int at = 0; at < count; ++at) {
    const std::uint64_t what = events[static_cast<std::size_t>(at)].data.u64;
    const auto number = static_cast<std::uint32_t>(what);
    const auto source = static_cast<Source>(what >> 32);
    if (source == Source::socket) {
      const auto found = sockets_.find(number);
      if (found == sockets_.end() || take_in(found->second, hold)) continue;
      forget(found->second.socket.get());
      const SnapshotId snapshot = found->second.snapshot;
      sockets_.erase(found);
      let_go(snapshot);
      continue;
    }
    const auto found = children_.find(number);
    if (found == children_.end()) continue;
    const Child& child = found->second;
    if (source == Source::faults) {
      std::array<Userfault::Fault, 16> faults;
      const std::size_t faulted = child.faults.read(faults);
      for (std::size_t index = 0; index < faulted; ++index)
        faults[index].moved_away ? kill_process(child.process) : serve({number}, faults[index].address);
      continue;
    }
    drop(found, let_go);
  }
}

// False once nobody has the other end any more.
bool ForkedChildren::take_in(const Socket& from, const LetGo& hold) {
  pid_t sender = 0;
  iovec data{&sender, sizeof sender};
  Control control{};
  msghdr message = header(data, control);
  const ssize_t got = ::recvmsg(from.socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  std::vector<UniqueFd> sent;
  const cmsghdr* part = CMSG_FIRSTHDR(&message);
  for (std::size_t at = 0; part != nullptr && CMSG_LEN((at + 1) * sizeof(int)) <= part->cmsg_len; ++at) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(part) + at * sizeof descriptor, sizeof descriptor);
    sent.emplace_back(descriptor);
  }
  if (got != sizeof sender) return true;  // Nobody of ours says so little.
  ++last_;
  if (sent.size() == kDescriptors) {
    Userfault faults = Userfault::of(std::move(sent[0]));
    if (listen(faults.fd(), name(Source::faults, last_)) && listen(sent[1].get(), name(Source::process, last_))) {
      hold(from.snapshot);
      children_.emplace(last_, Child{std::move(sent[1]), std::move(faults), from.snapshot});
      return true;
    }
    forget(faults.fd());
  }
  // It would wait for ever as soon as it touches a tensor.
  ::kill(sender, SIGKILL);
  tell_later(
      "spillway: a forked process had to be ended, since no descriptors are left to serve its page faults with; raise "
      "the limit on open files (ulimit -n)\n");
  return true;
}

void tell_later(std::string text) {
  auto thread = quiet_thread("spillway-tell", [text = std::move(text)] { tell(text); });
  if (thread) thread->detach();
}

void kill_process(const UniqueFd& process) { ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0); }

}  // namespace spillway
