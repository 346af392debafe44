#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "session/session.h"

namespace spillway {

// The supervisor's end of a session: it makes the shared memory and is the last to let go of it.
class SharedSession {
 public:
  static Result<SharedSession> create();
  SharedSession(SharedSession&& other) noexcept;
  SharedSession& operator=(SharedSession&&) = delete;
  ~SharedSession();

  Session& operator*() const { return *session_; }
  Session* operator->() const { return session_; }

  // What SPILLWAY_SESSION is set to. It leads through this process's own descriptor, so that the script finds the
  // session whatever it or a shell or launcher between did to inherited descriptors; it works while this process lives.
  std::string path() const;

 private:
  SharedSession(UniqueFd memory, Session* session) : memory_(std::move(memory)), session_(session) {}

  UniqueFd memory_;
  Session* session_;
};

// Copies a text into a fixed field of the configuration; an error that names `what` if it does not fit.
Result<> set_text(std::span<char> field, std::string_view text, std::string_view what);

}  // namespace spillway
