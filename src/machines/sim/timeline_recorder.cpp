#include "machines/sim/timeline_recorder.h"

#include <algorithm>
#include <utility>

#include "memory/pieces.h"

namespace spillway {
namespace {

constexpr std::uint32_t kNoTensor = UINT32_MAX;

std::optional<Tier> tier_of(const PageTable& table, BlockId block) {
  switch (table.state(block)) {
    case BlockState::resident:
    case BlockState::clean:
    case BlockState::leaving:
      return Tier::device;
    case BlockState::stored:
    case BlockState::arriving:
      return table.lower(block);
    case BlockState::empty:
    case BlockState::in_pieces:
      break;
  }
  return std::nullopt;
}

// Where a tensor's bytes are; it may share its blocks.
PerTier<Bytes> places_of(const PageTable& table, BlockRange blocks, Bytes size) {
  PerTier<Bytes> found;
  const auto add = [&](BlockId block) {
    if (const auto tier = tier_of(table, block)) found[*tier] += table.bytes(block);
  };
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value) {
    if (!table.is_split(block)) {
      add(block);
      continue;
    }
    const BlockRange pieces = pieces_of(block);
    for (BlockId piece = pieces.first; piece < pieces.end(); ++piece.value)
      if (table.contains({piece, 1})) add(piece);
  }
  for (const Tier tier : kTiers) {
    found[tier] = std::min(found[tier], size);
    size -= found[tier];
  }
  return found;
}

}  // namespace

TimelineRecorder::TimelineRecorder(const Trace& trace, const Lifetimes& lifetimes)
    : trace_(trace), lifetimes_(lifetimes) {}

TimelineRecorder::Queue& TimelineRecorder::queue_of(const PlayedTransfer& transfer) {
  return queues_[(static_cast<std::size_t>(transfer.from) * 3 + static_cast<std::size_t>(transfer.to)) * 3 +
                 static_cast<std::size_t>(transfer.urgency)];
}

void TimelineRecorder::begin_iteration(Nanos at, const Layout& layout, const PageTable& table) {
  begin_ = at;
  ended_.clear();
  levels_.clear();
  peak_ = {};
  ready_.assign(trace_.kernels.size(), at);
  done_.assign(trace_.kernels.size(), at);
  owners_.resize(layout.block_bytes.size(), kNoTensor);
  at_start_.assign(trace_.tensors.size(), {});
  for (std::uint32_t t = 0; t < trace_.tensors.size(); ++t)
    if (lifetimes_.tensors[t].alive_at_start)
      at_start_[t] = places_of(table, layout.tensors[t], trace_.tensors[t].bytes);
  note_level(at, table);
}

void TimelineRecorder::own(BlockRange blocks, std::uint32_t tensor) {
  if (tensor >= trace_.tensors.size()) return;
  for (BlockId block = blocks.first; block < blocks.end() && block.value < owners_.size(); ++block.value)
    owners_[block.value] = tensor;
}

void TimelineRecorder::told(const Stamped& event) {
  if (const auto* ready = std::get_if<KernelReady>(&event.what)) {
    ready_[ready->kernel.value] = event.at;
    for (const BlockAccess& access : ready->accesses)
      own(access.blocks, static_cast<std::uint32_t>(access.tensor.value - 1));  // See label_of().
    running_ = ready->kernel;
  } else if (std::holds_alternative<KernelDone>(event.what)) {
    done_[running_.value] = event.at;
  } else if (const auto* allocated = std::get_if<Allocated>(&event.what)) {
    own(allocated->blocks, allocated->tensor.value);
  } else if (const auto* done = std::get_if<MoveDone>(&event.what)) {
    ended(done->move, event.at, false);
  } else if (const auto* failed = std::get_if<MoveFailed>(&event.what)) {
    ended(failed->move, event.at, true);
  }
}

void TimelineRecorder::ended(MoveId move, Nanos at, bool cancelled) {
  const auto found = under_way_.find(move);
  if (found == under_way_.end()) return;
  PlayedTransfer transfer = std::move(found->second);
  under_way_.erase(found);
  Queue& queue = queue_of(transfer);
  const bool was_first = !queue.empty() && queue.front() == move;
  std::erase(queue, move);
  if (was_first && !queue.empty()) under_way_.at(queue.front()).begin = at;
  if (transfer.copied && !was_first) transfer.begin = at;  // Its turn never came.
  transfer.end = at;
  transfer.cancelled = cancelled;
  ended_.push_back(transfer);
}

void TimelineRecorder::asked(Nanos at, std::span<const Command> commands, const PageTable& table) {
  for (const Command& command : commands) {
    const auto* move = std::get_if<Move>(&command);
    if (move == nullptr) continue;
    const std::uint32_t owner = owners_[block_of(move->blocks.first).value];
    PlayedTransfer transfer{.tensor = owner == kNoTensor ? std::nullopt : std::optional(TensorId{owner}),
                            .bytes = {},
                            .from = move->from,
                            .to = move->to,
                            .urgency = move->urgency,
                            .queued = at,
                            .begin = at,
                            .end = at,
                            .copied = move->to == Tier::device || !move->clean};
    for (BlockId block = move->blocks.first; block < move->blocks.end(); ++block.value)
      transfer.bytes += table.bytes(block);
    if (transfer.copied) queue_of(transfer).push_back(move->id);
    under_way_.insert_or_assign(move->id, transfer);
  }
  note_level(at, table);
}

void TimelineRecorder::note_level(Nanos at, const PageTable& table) {
  TierLevel now{.at = at, .bytes = {}};
  for (const Tier tier : kTiers) {
    now.bytes[tier] = table.used(tier);
    peak_[tier] = std::max(peak_[tier], now.bytes[tier]);
  }
  if (!levels_.empty() && levels_.back().bytes == now.bytes) return;
  if (!levels_.empty() && levels_.back().at == at)
    levels_.back() = now;
  else
    levels_.push_back(now);
}

// By the iteration's own clock, and no further than the iteration.
PlayedTransfer TimelineRecorder::cut(PlayedTransfer transfer, Nanos end) const {
  transfer.from_before = transfer.queued < begin_;
  transfer.queued = excess(transfer.queued, begin_);
  transfer.begin = excess(transfer.begin, begin_);
  transfer.end = excess(std::min(transfer.end, end), begin_);
  return transfer;
}

RunTimeline TimelineRecorder::finish(Nanos end, std::span<const Nanos> waits) const {
  RunTimeline result{.trace_name = trace_.name, .iteration = end - begin_, .ideal = {}, .peak = peak_};
  for (std::uint32_t t = 0; t < trace_.tensors.size(); ++t)
    result.tensors.push_back({.name = trace_.tensors[t].name,
                              .bytes = trace_.tensors[t].bytes,
                              .kind = trace_.tensors[t].kind,
                              .at_start = at_start_[t]});
  for (std::uint32_t k = 0; k < trace_.kernels.size(); ++k) {
    const Kernel& kernel = trace_.kernels[k];
    PlayedKernel played{.name = kernel.name,
                        .kernel = {k},
                        .phase = kernel.phase,
                        .ready = ready_[k] - begin_,
                        .start = ready_[k] - begin_ + waits[k],
                        .end = done_[k] - begin_};
    for (const Access& read : kernel.reads) played.reads.push_back(read.tensor);
    for (const Access& write : kernel.writes) played.writes.push_back(write.tensor);
    for (const TensorId born : lifetimes_.births[k]) result.lives.push_back({played.ready, born, true});
    for (const TensorId dead : lifetimes_.deaths[k]) result.lives.push_back({played.end, dead, false});
    result.kernels.push_back(std::move(played));
  }
  std::vector<PlayedTransfer> transfers;
  for (const PlayedTransfer& one : ended_) transfers.push_back(cut(one, end));
  // What is under way at the end has no order of its own: that of the queues.
  for (const Queue& queue : queues_)
    for (const MoveId move : queue) {
      if (move != queue.front()) continue;  // It has not begun, so it is one of the next iteration.
      PlayedTransfer one = under_way_.at(move);
      one.end = end;
      one = cut(one, end);
      one.goes_on = true;
      transfers.push_back(one);
    }
  result.transfers = merged(transfers);
  std::vector<TierLevel> levels = levels_;
  for (TierLevel& level : levels) level.at -= begin_;
  result.levels = thinned(levels, peak_);
  explain_stalls(result);
  return result;
}

}  // namespace spillway
