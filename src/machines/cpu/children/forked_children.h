#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "machines/cpu/children/snapshots.h"
#include "machines/cpu/userfault.h"

namespace spillway {

// What a forked child does at once, in its own process: from here on the faults that it has in the range are read and
// served by whoever has the other end of the socket. The descriptor keeps the range from becoming zeroes should that
// process end first. Makes only system calls, unless it fails.
Result<Userfault> ask_to_be_served(int socket, std::byte* begin, std::size_t bytes);

using ChildId = Id<struct ChildTag>;  // never that of an earlier one

// The forked processes whose faults this one serves, and theirs. Used by the run loop only; never waits.
class ForkedChildren {
 public:
  struct Child {
    UniqueFd process;  // a pidfd
    Userfault faults;
    SnapshotId snapshot;
  };
  using Serve = std::function<void(ChildId, std::byte* address)>;
  using LetGo = std::function<void(SnapshotId)>;

  static Result<ForkedChildren> make();
  int fd() const { return poll_.get(); }  // readable when collect() has something to do
  bool empty() const { return sockets_.empty() && children_.empty(); }

  // Who asks through this socket sees the snapshot. False: it cannot be listened to.
  bool expect(UniqueFd socket, SnapshotId snapshot);
  // Takes in who asks to be served, calling `hold` for each; calls `serve` for each fault; and `let_go` for each child
  // that has ended and each socket that nobody asks through any more.
  void collect(const LetGo& hold, const Serve& serve, const LetGo& let_go);
  // Those that run another program now never ask again, and nothing tells when they began to.
  void drop_ended(const LetGo& let_go);
  // Null: it has ended.
  const Child* find(ChildId child) const;
  // In a child: they are its parent's.
  void abandon();

 private:
  struct Socket {
    UniqueFd socket;
    SnapshotId snapshot;
  };
  explicit ForkedChildren(UniqueFd poll) : poll_(std::move(poll)) {}
  bool listen(int descriptor, std::uint64_t name);
  void forget(int descriptor);
  bool take_in(const Socket& from, const LetGo& hold);
  using Children = std::map<std::uint32_t, Child>;
  Children::iterator drop(Children::iterator child, const LetGo& let_go);

  UniqueFd poll_;
  std::uint32_t last_ = 0;
  std::map<std::uint32_t, Socket> sockets_;
  Children children_;
};

// Ends it at once.
void kill_process(const UniqueFd& process);

// On stderr, some time: a thread of the script may hold its lock (`write` of a tensor into the same file or pipe) and
// wait for the caller to serve its fault.
void tell_later(std::string text);

}  // namespace spillway
