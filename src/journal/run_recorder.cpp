#include "journal/run_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "memory/pieces.h"

namespace spillway {
namespace {

constexpr std::uint32_t kNoTensor = UINT32_MAX;
constexpr const char* kOutside = "outside of operators";

void add_once(std::vector<TensorId>& tensors, std::uint32_t tensor) {
  if (std::ranges::find(tensors, TensorId{tensor}) == tensors.end()) tensors.push_back({tensor});
}

Bytes bytes_of(BlockRange blocks, const PageTable& table) {
  Bytes bytes;
  for (BlockId block = blocks.first; block < blocks.end(); ++block.value) bytes += table.bytes(block);
  return bytes;
}

// By a thread of the script, in the order in which it happened. All else is told at once, so maybe before that.
bool is_told_by_script(const Event& event) {
  return std::holds_alternative<Allocated>(event) || std::holds_alternative<Freed>(event) ||
         std::holds_alternative<KernelReady>(event) || std::holds_alternative<KernelDone>(event) ||
         std::holds_alternative<Adopted>(event);
}

}  // namespace

RunRecorder::RunRecorder(IterationRange iterations, const IterationEnds& ends, const RunNames& names)
    : wanted_(iterations),
      ends_(ends),
      names_(names),
      after_(iterations.first > 1 ? std::optional(ends[iterations.first - 1]) : std::nullopt),
      until_(iterations.last <= ends.count() ? ends[iterations.last] : Nanos{UINT64_MAX}) {}

bool RunRecorder::told(Nanos at, const Told& event, const PageTable& table) {
  const Nanos happened = excess(at, event.ago);
  const bool by_script = is_told_by_script(event.event);
  if (!tiers_have_begun_ && (!after_ || at > *after_)) begin_tiers(after_.value_or(happened), table);
  if (!has_begun_ && (!after_ || happened > *after_) && (by_script || std::holds_alternative<Faulted>(event.event)))
    begin(table);
  now_ = std::max(std::min(at, until_), begin_);
  iterations_ = std::max(iterations_, ends_.before(happened));
  if (happened > until_) return !by_script;  // The script may not have told all that it did before.
  note(event.event, std::max(happened, begin_), table);
  return true;
}

void RunRecorder::begin_tiers(Nanos at, const PageTable& table) {
  tiers_have_begun_ = true;
  begin_ = at;
  transfers_.begin(at);
  levels_.begin(at, table);
}

void RunRecorder::begin(const PageTable& table) {
  has_begun_ = true;
  owners_.resize(table.block_count(), kNoTensor);
  std::vector<std::pair<TensorId, Alive>> alive(alive_.begin(), alive_.end());
  std::ranges::sort(alive, {}, [](const auto& one) { return one.first; });
  for (const auto& [id, one] : alive) {
    const std::uint32_t tensor = tensor_of(id, one, table);
    PlayedTensor& played = result_.tensors[tensor];
    played.at_start = places_of(table, one.blocks, played.bytes);
    own(one.blocks, tensor);
  }
}

void RunRecorder::note(const Event& event, Nanos at, const PageTable& table) {
  if (const auto* allocated = std::get_if<Allocated>(&event)) return made(*allocated, at, table);
  if (const auto* freed = std::get_if<Freed>(&event)) {
    const auto found = alive_.find(freed->tensor);
    if (found == alive_.end()) return;
    if (has_begun_) result_.lives.push_back({at - begin_, {tensor_of(freed->tensor, found->second, table)}, false});
    without_label_.erase(freed->tensor);
    alive_.erase(found);
    return;
  }
  if (const auto* move = std::get_if<MoveDone>(&event)) return transfers_.ended(move->move, at, false);
  if (const auto* move = std::get_if<MoveFailed>(&event)) return transfers_.ended(move->move, at, true);
  if (!has_begun_ || (after_ && at <= *after_)) return;  // It is of an iteration before.
  if (const auto* kernel = std::get_if<KernelReady>(&event)) return ready(*kernel, at);
  if (const auto* kernel = std::get_if<KernelDone>(&event)) {
    if (auto one = running_.extract(kernel->launch)) done(std::move(one.mapped()), at);
    return;
  }
  if (const auto* fault = std::get_if<Faulted>(&event); fault != nullptr && fault->stream != kNobody) {
    if (const auto before = faults_.extract(fault->stream)) came(fault->stream, before.mapped(), at);  // It goes on.
    faults_[fault->stream] = {fault->blocks, at};
    return;
  }
  if (const auto* adopted = std::get_if<Adopted>(&event))
    result_.marks.push_back({at - begin_, adopted->plan == nullptr
                                              ? std::string("no plan any more")
                                              : fmt::format("plan of {}", adopted->plan->commands.policy)});
}

std::string RunRecorder::name_of(ExecutionId execution) {
  if (const std::string_view name = names_.name(execution); !name.empty()) return std::string(name);
  if (execution == ExecutionId{}) return "operator";
  const auto next = static_cast<std::uint32_t>(without_name_.size()) + 1;
  return fmt::format("operator {}", without_name_.emplace(execution, next).first->second);
}

void RunRecorder::ready(const KernelReady& event, Nanos at) {
  const Kernel* known = names_.kernel(event.execution);
  Running running{.kernel = {.name = known != nullptr ? known->name : name_of(event.execution),
                             .kernel = event.kernel,
                             .phase = known != nullptr ? known->phase : Phase::other,
                             .ready = at,
                             .start = at,
                             .thread = event.launch.stream.value},
                  .started = !event.waits};
  for (const BlockAccess& access : event.accesses) {
    const auto tensor = by_label_.find(access.tensor);
    if (tensor == by_label_.end()) continue;
    add_once(access.writes ? running.kernel.writes : running.kernel.reads, tensor->second);
    if (!access.sparse) own(access.blocks, tensor->second);
  }
  running_.insert_or_assign(event.launch, std::move(running));
}

void RunRecorder::done(Running one, Nanos at) {
  PlayedKernel& kernel = one.kernel;
  kernel.end = std::max(at, kernel.start);
  kernel.start = std::min(kernel.end, kernel.start + covered(std::move(one.faults)));
  result_.kernels.push_back(std::move(kernel));
}

// Null: none, or nobody can say which.
RunRecorder::Running* RunRecorder::runs_on(StreamId stream) {
  const auto own_one = running_.lower_bound({stream, 0});
  if (own_one != running_.end() && own_one->first.stream == stream) return &own_one->second;
  return running_.size() == 1 ? &running_.begin()->second : nullptr;
}

// What the thread has waited for.
void RunRecorder::came(StreamId stream, const Fault& fault, Nanos at) {
  if (Running* running = runs_on(stream)) {
    ++running->kernel.faults;
    running->faults.emplace_back(std::max(fault.since, running->kernel.start), at);
    return;
  }
  if (at <= fault.since) return;
  PlayedKernel outside{.name = kOutside,
                       .kernel = kNoKernel,
                       .ready = fault.since,
                       .start = at,
                       .end = at,
                       .thread = stream.value,
                       .faults = 1};
  if (const std::uint32_t owner = owners_[block_of(fault.blocks.first).value]; owner != kNoTensor)
    outside.reads.push_back({owner});
  result_.kernels.push_back(std::move(outside));
}

void RunRecorder::settle_faults(Nanos at, const PageTable& table) {
  for (auto one = faults_.begin(); one != faults_.end();) {
    const BlockRange blocks = one->second.blocks;
    bool is_there = true;
    for (BlockId block = blocks.first; block < blocks.end(); ++block.value)
      is_there = is_there && (!table.contains({block, 1}) || on_device(table.state(block)));
    if (is_there) came(one->first, one->second, at);
    one = is_there ? faults_.erase(one) : std::next(one);
  }
}

void RunRecorder::made(const Allocated& event, Nanos at, const PageTable& table) {
  const Alive& alive = alive_[event.tensor] = {event.blocks, event.label};
  if (!has_begun_) return;
  const std::uint32_t tensor = tensor_of(event.tensor, alive, table);
  own(event.blocks, tensor);
  result_.lives.push_back({at - begin_, {tensor}, true});
  if (running_.size() != 1) return;  // Nobody tells which thread has made it.
  PlayedKernel& maker = running_.begin()->second.kernel;
  add_once(maker.writes, tensor);
  PlayedTensor& played = result_.tensors[tensor];
  if (played.name.empty()) played.name = "made by " + maker.name;
}

void RunRecorder::own(BlockRange blocks, std::uint32_t tensor) {
  for (BlockId block = blocks.first; block < blocks.end() && block.value < owners_.size(); ++block.value)
    owners_[block.value] = tensor;
}

// What plays the same part in each iteration is one tensor.
std::uint32_t RunRecorder::tensor_of(TensorId tensor, const Alive& alive, const PageTable& table) {
  const bool has_label = alive.label != TensorLabel{};
  const auto next = static_cast<std::uint32_t>(result_.tensors.size());
  const std::uint32_t place = has_label ? by_label_.emplace(alive.label, next).first->second
                                        : without_label_.emplace(tensor, next).first->second;
  if (place != next) return place;
  PlayedTensor played{.name = {}, .bytes = bytes_of(alive.blocks, table)};
  if (const Tensor* named = names_.tensor(alive.label)) {
    played.name = named->name;
    played.kind = named->kind;
    played.bytes = named->bytes;
  }
  result_.tensors.push_back(std::move(played));
  return place;
}

void RunRecorder::asked(Nanos at, std::span<const Command> commands, const PageTable& table) {
  if (at > until_) return;  // It is of what follows.
  for (const Command& command : commands) {
    if (const auto* launch = std::get_if<Launch>(&command)) {
      const auto running = running_.find(launch->launch);
      if (running == running_.end() || std::exchange(running->second.started, true)) continue;
      running->second.kernel.start = std::max(at, running->second.kernel.ready);
    }
    const auto* move = std::get_if<Move>(&command);
    if (move == nullptr) continue;
    TransferLog::Cargo cargo{.tensor = std::nullopt, .bytes = bytes_of(move->blocks, table)};
    if (has_begun_)
      if (const std::uint32_t owner = owners_[block_of(move->blocks.first).value]; owner != kNoTensor)
        cargo.tensor = TensorId{owner};
    transfers_.asked(*move, cargo, at);
  }
  if (!tiers_have_begun_) return;
  settle_faults(at, table);
  levels_.note(at, table);
}

void RunRecorder::mark_iterations() {
  std::vector<PlayedMark> marks;
  for (std::uint64_t one = wanted_.first; one < wanted_.first + result_.iterations; ++one) {
    const Nanos at = one > 1 ? excess(ends_[one - 1], begin_) : Nanos{};
    marks.push_back({at, fmt::format("iteration {}", one)});
  }
  result_.marks.insert(result_.marks.begin(), marks.begin(), marks.end());
}

std::optional<RunTimeline> RunRecorder::finish() {
  if (!has_begun_) return std::nullopt;
  for (const auto& [stream, fault] : faults_) came(stream, fault, now_);
  for (auto& [launch, one] : running_) {
    if (!one.started) one.kernel.start = now_;
    done(std::move(one), now_);
  }
  result_.iteration = now_ - begin_;
  result_.iterations = std::min(iterations_ + 1, wanted_.last) - (wanted_.first - 1);
  mark_iterations();
  result_.peak = levels_.peak();
  result_.levels = levels_.levels();
  result_.transfers = transfers_.until(now_);
  for (std::size_t t = 0; t < result_.tensors.size(); ++t)
    if (result_.tensors[t].name.empty()) result_.tensors[t].name = fmt::format("tensor {}", t);
  for (PlayedKernel& kernel : result_.kernels) {
    kernel.ready -= begin_;
    kernel.start -= begin_;
    kernel.end -= begin_;
  }
  std::ranges::stable_sort(result_.kernels, {}, &PlayedKernel::ready);
  std::ranges::stable_sort(result_.lives, {}, &PlayedLife::at);
  std::ranges::stable_sort(result_.marks, {}, &PlayedMark::at);
  explain_stalls(result_);
  return std::move(result_);
}

}  // namespace spillway
