#include "timeline/transfer_log.h"

#include <algorithm>
#include <utility>

namespace spillway {

TransferLog::Queue& TransferLog::queue_of(const PlayedTransfer& transfer) {
  return queues_[(static_cast<std::size_t>(transfer.from) * 3 + static_cast<std::size_t>(transfer.to)) * 3 +
                 static_cast<std::size_t>(transfer.urgency)];
}

void TransferLog::begin(Nanos at) {
  begin_ = at;
  ended_.clear();
}

void TransferLog::asked(const Move& move, const Cargo& cargo, Nanos at) {
  const PlayedTransfer transfer{.tensor = cargo.tensor,
                                .bytes = cargo.bytes,
                                .from = move.from,
                                .to = move.to,
                                .urgency = move.urgency,
                                .queued = at,
                                .begin = at,
                                .end = at,
                                .copied = move.to == Tier::device || !move.clean};
  if (transfer.copied) queue_of(transfer).push_back(move.id);
  under_way_.insert_or_assign(move.id, transfer);
}

void TransferLog::ended(MoveId move, Nanos at, bool cancelled) {
  const auto found = under_way_.find(move);
  if (found == under_way_.end()) return;
  PlayedTransfer transfer = std::move(found->second);
  under_way_.erase(found);
  Queue& queue = queue_of(transfer);
  const bool was_first = !queue.empty() && queue.front() == move;
  if (was_first)
    queue.pop_front();
  else
    std::erase(queue, move);
  if (was_first && !queue.empty()) under_way_.at(queue.front()).begin = at;
  if (transfer.copied && !was_first) transfer.begin = at;  // Its turn never came.
  transfer.end = std::max(at, transfer.begin);             // A forged journal may say that it ended before.
  transfer.cancelled = cancelled;
  ended_.push_back(transfer);
}

// By the beginning's clock, and no further than the end.
PlayedTransfer TransferLog::cut(PlayedTransfer transfer, Nanos end) const {
  transfer.from_before = transfer.queued < begin_;
  transfer.queued = excess(transfer.queued, begin_);
  transfer.begin = excess(transfer.begin, begin_);
  transfer.end = excess(std::min(transfer.end, end), begin_);
  return transfer;
}

std::vector<PlayedTransfer> TransferLog::until(Nanos end) const {
  std::vector<PlayedTransfer> transfers;
  for (const PlayedTransfer& one : ended_) transfers.push_back(cut(one, end));
  // What is under way at the end has no order of its own: that of the queues. All but the first of each have not begun,
  // so they are of what follows.
  for (const Queue& queue : queues_) {
    if (queue.empty()) continue;
    PlayedTransfer one = under_way_.at(queue.front());
    one.end = end;
    one = cut(one, end);
    one.goes_on = true;
    transfers.push_back(one);
  }
  return merged(transfers);
}

}  // namespace spillway
