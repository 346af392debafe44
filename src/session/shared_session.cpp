#include "session/shared_session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/files.h"
#include "base/text.h"

namespace spillway {

Result<SharedSession> SharedSession::create() {
  const auto failed = [](std::string_view step) {
    return fail(Errc::io, fmt::format("cannot share memory with the script ({}): {}", step, errno_text(errno)));
  };
  if (Bytes{sizeof(Session)} > file_size_limit())
    return fail(Errc::bad_input,
                fmt::format("the limit on file sizes (ulimit -f) is {}, below the {} that a run needs in "
                            "memory; raise it",
                            to_text(file_size_limit()), to_text(Bytes{sizeof(Session)})));
  const int raw = ::memfd_create("spillway-session", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (raw < 0) return failed("memfd_create");
  UniqueFd memory(raw);
  if (::ftruncate(memory.get(), sizeof(Session)) != 0) return failed("ftruncate");
  // Nobody can shrink it under our feet, so reading it never raises SIGBUS.
  if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return failed("seal");
  void* mapped = ::mmap(nullptr, sizeof(Session), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) return failed("mmap");
  // No constructor runs over the iterations: it would write, and so occupy, all of their memory.
  auto* session = static_cast<Session*>(mapped);
  session->magic = kSessionMagic;
  session->version = kSessionVersion;
  session->size = sizeof(Session);
  session->config = SessionConfig{};
  return SharedSession(std::move(memory), session);
}

SharedSession::SharedSession(SharedSession&& other) noexcept
    : memory_(std::move(other.memory_)), session_(std::exchange(other.session_, nullptr)) {}

SharedSession::~SharedSession() {
  if (session_ != nullptr) ::munmap(session_, sizeof(Session));
}

std::string SharedSession::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), memory_.get()); }

Result<> set_text(std::span<char> field, std::string_view text, std::string_view what) {
  if (text.size() >= field.size())
    return fail(Errc::bad_input, fmt::format("{} is too long: {} bytes, at most {} fit; choose a shorter one", what,
                                             text.size(), field.size() - 1));
  std::ranges::fill(field, '\0');
  std::ranges::copy(text, field.begin());
  return {};
}

}  // namespace spillway
