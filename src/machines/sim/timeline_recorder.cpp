#include "machines/sim/timeline_recorder.h"

#include <utility>

#include "memory/pieces.h"

namespace spillway {
namespace {

constexpr std::uint32_t kNoTensor = UINT32_MAX;

}  // namespace

TimelineRecorder::TimelineRecorder(const Trace& trace, const Lifetimes& lifetimes)
    : trace_(trace), lifetimes_(lifetimes) {}

void TimelineRecorder::begin_iteration(Nanos at, const Layout& layout, const PageTable& table) {
  begin_ = at;
  transfers_.begin(at);
  ready_.assign(trace_.kernels.size(), at);
  done_.assign(trace_.kernels.size(), at);
  owners_.resize(layout.block_bytes.size(), kNoTensor);
  at_start_.assign(trace_.tensors.size(), {});
  for (std::uint32_t t = 0; t < trace_.tensors.size(); ++t)
    if (lifetimes_.tensors[t].alive_at_start)
      at_start_[t] = places_of(table, layout.tensors[t], trace_.tensors[t].bytes);
  levels_.begin(at, table);
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
    transfers_.ended(done->move, event.at, false);
  } else if (const auto* failed = std::get_if<MoveFailed>(&event.what)) {
    transfers_.ended(failed->move, event.at, true);
  }
}

void TimelineRecorder::asked(Nanos at, std::span<const Command> commands, const PageTable& table) {
  for (const Command& command : commands) {
    const auto* move = std::get_if<Move>(&command);
    if (move == nullptr) continue;
    const std::uint32_t owner = owners_[block_of(move->blocks.first).value];
    TransferLog::Cargo cargo{.tensor = owner == kNoTensor ? std::nullopt : std::optional(TensorId{owner}), .bytes = {}};
    for (BlockId block = move->blocks.first; block < move->blocks.end(); ++block.value)
      cargo.bytes += table.bytes(block);
    transfers_.asked(*move, cargo, at);
  }
  levels_.note(at, table);
}

RunTimeline TimelineRecorder::finish(Nanos end, std::span<const Nanos> waits) const {
  RunTimeline result{.trace_name = trace_.name, .iteration = end - begin_, .ideal = {}, .peak = levels_.peak()};
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
    for (const TensorId born : lifetimes_.births[k])
      result.lives.push_back({played.start, born, true});  // While it waits, there may be no room.
    for (const TensorId dead : lifetimes_.deaths[k]) result.lives.push_back({played.end, dead, false});
    result.kernels.push_back(std::move(played));
  }
  result.transfers = transfers_.until(end);
  result.levels = levels_.levels();
  explain_stalls(result);
  return result;
}

}  // namespace spillway
