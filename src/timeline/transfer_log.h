#pragma once

#include <array>
#include <deque>
#include <unordered_map>
#include <vector>

#include "executor/machine.h"
#include "timeline/run_timeline.h"

namespace spillway {

// Writes down moves, as an executor asks for them and is told of their ends. On each way, and of each urgency, they
// take turns in the order in which they were asked for.
class TransferLog {
 public:
  // What ended before is forgotten; what is under way stays.
  void begin(Nanos at);
  // Whose bytes, and how many of them, the machine does not say.
  struct Cargo {
    std::optional<TensorId> tensor;
    Bytes bytes;
  };
  void asked(const Move& move, const Cargo& cargo, Nanos at);
  void ended(MoveId move, Nanos at, bool cancelled);
  // Since the beginning, which is their time zero, until `end`; chunks are merged.
  std::vector<PlayedTransfer> until(Nanos end) const;

 private:
  using Queue = std::deque<MoveId>;
  Queue& queue_of(const PlayedTransfer& transfer);
  PlayedTransfer cut(PlayedTransfer transfer, Nanos end) const;

  std::unordered_map<MoveId, PlayedTransfer> under_way_;
  std::array<Queue, 3 * 3 * 3> queues_;  // by way and urgency: those under way, in order
  std::vector<PlayedTransfer> ended_;
  Nanos begin_;
};

}  // namespace spillway
