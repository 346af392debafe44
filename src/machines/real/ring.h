#pragma once

#include <liburing.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

#include "machines/real/block_io.h"
#include "machines/real/doorbell.h"

namespace spillway {

// Block transfers of one file by io_uring. Plain reads and writes: registered buffers would pin their pages, which then
// could not be moved, and polling threads would take the cores from the script.
class Ring final : public BlockIo {
 public:
  // Both outlive the ring. The file, and those in `kept_open`, stay open as long as the ring lives, even if the script
  // closes all descriptors that it finds; if the process dies, the file is closed first. The error says why io_uring
  // cannot be had, and the remedy. wait() returns also when `news` is readable, which somebody else reads,
  // and fails when one of the two has been closed.
  static Result<std::unique_ptr<Ring>> open(int file, const Doorbell& bell, std::optional<int> news = {},
                                            std::initializer_list<int> kept_open = {});
  ~Ring() override;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  void start(const Transfer& transfer) override;
  Result<> wait(std::vector<Completion>& ended, std::optional<std::chrono::microseconds> timeout) override;
  int fd() const { return ring_.ring_fd; }

 private:
  struct Active {
    Transfer transfer;
    std::vector<iovec> rest;  // A transfer may come in parts.
    std::uint64_t offset = 0;
    bool in_use = false;
  };

  Ring(const Doorbell& bell, std::optional<int> news) : bell_(bell), news_(news), active_(kDepth) {}
  void prepare(std::uint32_t place);
  void listen();
  void take(const io_uring_cqe& cqe, std::vector<Completion>& ended);

  const Doorbell& bell_;
  std::optional<int> news_;
  io_uring ring_{};
  bool open_ = false;
  bool listening_ = false, listening_to_news_ = false;
  bool is_deaf_ = false;  // the script has closed what it listens to
  std::vector<Active> active_;
};

}  // namespace spillway
