#include "policies/deepum.h"

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace spillway {
namespace {

// We do not look so far ahead that what they use takes more than this part of the device: what is needed next would
// leave again.
constexpr double kMostOfDevice = 0.5;
// Room is kept for what so many of them make, up to this part of the device.
constexpr std::size_t kBirthsAhead = 4;
constexpr double kMostBirths = 0.125;
// A script that never repeats itself must not fill the memory: then all is learned anew.
constexpr std::size_t kMostExecutions = std::size_t{1} << 17;
constexpr std::size_t kMostSuccessors = 32;

// Of a tensor's blocks, those that a kernel uses.
struct Operand {
  TensorLabel tensor;
  std::uint32_t first = 0, count = 0;  // counted from the tensor's first
};

// Section 4.2, Figure 6: the three kernels before the current one, and the one that came after it.
using Context = std::array<ExecutionId, 3>;
struct Successor {
  Context before;
  ExecutionId next;
};

// What is known of one execution ID.
struct Execution {
  std::vector<Successor> successors;  // the most recent first
  std::vector<Operand> operands;      // of the last time
  std::vector<Operand> faulted;       // single blocks of sparse operands, the most recent last
  std::size_t most_faulted = 0;       // such blocks at a time
  Bytes births;                       // of blocks that came to life during it, the most at a time, the last time
};

// A kernel that is expected.
struct Ahead {
  ExecutionId execution;
  ExpectedUse use;
};

struct UsedAhead {
  std::uint32_t kernels = 0;  // that are expected to use it
  Bytes bytes;
};

struct Stream {
  Context before{};
  ExecutionId current{};
  std::size_t faulted = 0;  // blocks of sparse operands, by the current kernel
  std::deque<Ahead> ahead;
  std::unordered_map<BlockId, UsedAhead> used_ahead;
  Bytes ahead_bytes;                // of these
  std::vector<BlockAccess> sparse;  // of the current kernel
};

class Deepum final : public OnlinePolicy {
 public:
  Deepum(Bytes device, std::size_t kernels_ahead)
      : kernels_ahead_(kernels_ahead),
        most_ahead_(part_of(device, kMostOfDevice)),
        most_births_(part_of(device, kMostBirths)) {}

  void allocated(const Allocated& event, const PageTable& table) override {
    for (BlockId block = event.blocks.first; block < event.blocks.end(); ++block.value) {
      LivingBlock& living = blocks_[block];
      if (++living.tensors == 1) born_ += static_cast<std::int64_t>((living.bytes = table.bytes(block)).value);
    }
    most_born_ = std::max(most_born_, born_);
    if (event.label == TensorLabel{}) return;
    living_[event.label] = {event.tensor, event.blocks};
    labels_[event.tensor] = event.label;
  }

  void freed(const Freed& event) override {
    for (BlockId block = event.blocks.first; block < event.blocks.end(); ++block.value)
      if (const auto living = blocks_.find(block); --living->second.tensors == 0) {
        born_ -= static_cast<std::int64_t>(living->second.bytes.value);
        blocks_.erase(living);
      }
    const auto label = labels_.find(event.tensor);
    if (label == labels_.end()) return;
    if (const auto tensor = living_.find(label->second); tensor != living_.end() && tensor->second.id == event.tensor)
      living_.erase(tensor);
    labels_.erase(label);
  }

  std::vector<BlockRange> faulted(const Faulted& event, const PageTable&) override {
    // A kernel's helper threads (OpenMP's) fault as streams of their own.
    for (auto& [id, stream] : streams_)
      for (const BlockAccess& access : stream.sparse)
        if (access.blocks.contains(event.blocks.first)) learn(stream, access, event.blocks.first);
    return {};
  }

  Forecast kernel_ready(const KernelReady& event, bool wanted) override {
    Stream& stream = streams_[event.launch.stream];
    if (executions_.size() > kMostExecutions) executions_.clear();
    if (event.execution == ExecutionId{}) {
      stream = {};
      return {.anew = true, .added = {}, .prefetches = {}, .births = {}};
    }
    learn(stream, event);
    Forecast forecast;
    forecast.anew = !wanted || stream.ahead.empty() || stream.ahead.front().execution != stream.current;
    if (forecast.anew)
      forget_ahead(stream);
    else
      forget_first(stream);
    if (wanted) look_ahead(stream, forecast);
    return forecast;
  }

 private:
  struct LivingBlock {
    std::uint32_t tensors = 0;  // in it
    Bytes bytes;
  };
  struct LivingTensor {
    TensorId id;
    BlockRange blocks;
  };

  static Bytes part_of(Bytes device, double part) {
    return {static_cast<std::uint64_t>(static_cast<double>(device.value) * part)};
  }

  void learn(Stream& stream, const KernelReady& event) {
    if (stream.current != ExecutionId{}) {
      Execution& last = executions_[stream.current];
      last.births = Bytes{static_cast<std::uint64_t>(most_born_)};
      follows(last.successors, {stream.before, event.execution});
      stream.before = {stream.before[1], stream.before[2], stream.current};
    }
    born_ = most_born_ = 0;
    stream.current = event.execution;
    stream.faulted = 0;
    stream.sparse.clear();
    Execution& execution = executions_[event.execution];
    execution.operands.clear();
    known_.clear();
    for (const BlockAccess& access : event.accesses) {
      if (access.sparse) {
        stream.sparse.push_back(access);
      } else if (const auto tensor = living_.find(access.tensor);
                 tensor != living_.end() && tensor->second.blocks.contains(access.blocks.first)) {
        const Operand operand{.tensor = access.tensor,
                              .first = access.blocks.first.value - tensor->second.blocks.first.value,
                              .count = access.blocks.count};
        const std::uint64_t place = std::uint64_t{access.blocks.first.value} << 32 | access.blocks.count;
        if (known_.insert(place).second) execution.operands.push_back(operand);  // It may write what it reads.
      }
    }
  }

  // The blocks that a kernel has faulted on are remembered, the most recent ones twice as many as it ever touched anew,
  // and no more than may be brought ahead in all.
  void learn(Stream& stream, const BlockAccess& access, BlockId block) {
    const auto tensor = living_.find(access.tensor);
    if (tensor == living_.end() || !tensor->second.blocks.contains(block)) return;
    Execution& execution = executions_[stream.current];
    execution.most_faulted = std::max(execution.most_faulted, ++stream.faulted);
    const std::uint32_t place = block.value - tensor->second.blocks.first.value;
    std::erase_if(execution.faulted,
                  [&](const Operand& known) { return known.tensor == access.tensor && known.first == place; });
    execution.faulted.push_back({.tensor = access.tensor, .first = place, .count = 1});
    const std::size_t most = std::max<std::size_t>(1, most_ahead_.value / std::max(bytes_of(block), Bytes{1}).value);
    if (execution.faulted.size() > std::min(most, 2 * execution.most_faulted))
      execution.faulted.erase(execution.faulted.begin());
  }

  static void follows(std::vector<Successor>& successors, const Successor& seen) {
    const auto known = std::ranges::find_if(
        successors, [&](const Successor& one) { return one.before == seen.before && one.next == seen.next; });
    if (known != successors.end()) {
      std::rotate(successors.begin(), known, known + 1);
      return;
    }
    if (successors.size() == kMostSuccessors) successors.pop_back();
    successors.insert(successors.begin(), seen);
  }

  // The kernel that came last after this one and those before it; else the one that came last after this one.
  ExecutionId predict(const Context& before, ExecutionId current) const {
    const auto known = executions_.find(current);
    if (known == executions_.end() || known->second.successors.empty()) return {};
    const auto same = std::ranges::find(known->second.successors, before, &Successor::before);
    return same != known->second.successors.end() ? same->next : known->second.successors.front().next;
  }

  // Chaining: what the kernels use that are expected next.
  void look_ahead(Stream& stream, Forecast& forecast) {
    Context before = stream.before;
    ExecutionId current = stream.current;
    std::size_t place = 0;
    const auto go_on = [&](ExecutionId next) {
      before = {before[1], before[2], current};
      current = next;
      if (place++ < kBirthsAhead) forecast.births += executions_[next].births;
    };
    forecast.births += executions_[current].births;
    for (const Ahead& known : stream.ahead) go_on(known.execution);
    while (stream.ahead.size() < kernels_ahead_) {
      const ExecutionId next = predict(before, current);
      if (next == ExecutionId{}) break;
      ExpectedUse use = use_of(executions_[next]);
      Bytes more;
      for_each_block(use,
                     [&](BlockId block) { more += stream.used_ahead.contains(block) ? Bytes{} : bytes_of(block); });
      if (stream.ahead_bytes + more > most_ahead_) break;
      for_each_block(use, [&](BlockId block) {
        UsedAhead& used = stream.used_ahead[block];
        if (++used.kernels == 1) stream.ahead_bytes += used.bytes = bytes_of(block);
      });
      forecast.prefetches.insert(forecast.prefetches.end(), use.begin(), use.end());
      forecast.added.push_back(use);
      stream.ahead.emplace_back(next, std::move(use));
      go_on(next);
    }
    forecast.births = std::min(forecast.births, most_births_);
  }

  static void forget_first(Stream& stream) {
    for_each_block(stream.ahead.front().use, [&](BlockId block) {
      if (const auto used = stream.used_ahead.find(block); --used->second.kernels == 0) {
        stream.ahead_bytes -= used->second.bytes;
        stream.used_ahead.erase(used);
      }
    });
    stream.ahead.pop_front();
  }
  static void forget_ahead(Stream& stream) {
    stream.ahead.clear();
    stream.used_ahead.clear();
    stream.ahead_bytes = {};
  }

  template <class F>
  static void for_each_block(const ExpectedUse& use, F&& call) {
    for (const BlockRange& blocks : use)
      for (BlockId block = blocks.first; block < blocks.end(); ++block.value) call(block);
  }

  Bytes bytes_of(BlockId block) const {
    const auto living = blocks_.find(block);
    return living != blocks_.end() ? living->second.bytes : Bytes{};
  }

  ExpectedUse use_of(const Execution& execution) const {
    ExpectedUse use;
    const auto add = [&](const Operand& operand) {
      const auto tensor = living_.find(operand.tensor);
      if (tensor == living_.end() || operand.first >= tensor->second.blocks.count) return;
      const BlockRange blocks = tensor->second.blocks;
      use.push_back({{blocks.first.value + operand.first}, std::min(operand.count, blocks.count - operand.first)});
    };
    std::ranges::for_each(execution.operands, add);
    std::ranges::for_each(execution.faulted, add);
    return use;
  }

  std::size_t kernels_ahead_;
  Bytes most_ahead_, most_births_;
  std::unordered_map<ExecutionId, Execution> executions_;
  std::unordered_map<StreamId, Stream> streams_;
  std::unordered_map<TensorLabel, LivingTensor> living_;
  std::unordered_map<TensorId, TensorLabel> labels_;
  std::unordered_set<std::uint64_t> known_;  // operands of the kernel that is learned
  std::unordered_map<BlockId, LivingBlock> blocks_;
  std::int64_t born_ = 0, most_born_ = 0;  // bytes of blocks since the last kernel began, less those that died
};

}  // namespace

std::unique_ptr<OnlinePolicy> make_deepum(Bytes device, const Parameters& parameters) {
  const Parameters known = parameters.has("ahead") ? parameters : Parameters(kDeepumParameters);
  return std::make_unique<Deepum>(device, known.count("ahead"));
}

}  // namespace spillway
