#include "policies/deepum_faults.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policies/block_table.h"
#include "policies/execution_table.h"

namespace spillway {
namespace {

// A script that never repeats itself must not fill the memory: then all is learned anew.
constexpr std::size_t kMostTables = std::size_t{1} << 17;

struct FaultOptions {
  std::size_t kernels_ahead;
  BlockTable::Shape shape;
  bool prefetches, pre_evicts;
};

// What runs on one stream.
struct Running {
  ExecutionTable::Four last{};       // kernels, the current one last
  std::deque<ExecutionId> expected;  // after it
  std::size_t reached = 0;           // so many of those the chain has gone through
  bool chains = false;               // a fault has begun a chain, which goes on when a kernel ends
  bool wanted = false;               // what is said of the current kernel and those after it is used

  ExecutionId current() const { return last.back(); }
};

ExecutionTable::Four then(const ExecutionTable::Four& four, ExecutionId next) {
  return {four[1], four[2], four[3], next};
}

void append(std::vector<BlockRange>& all, const std::vector<BlockRange>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

class DeepumFaults final : public OnlinePolicy {
 public:
  explicit DeepumFaults(const FaultOptions& options) : options_(options) {}

  void allocated(const Allocated&, const PageTable&) override {}
  void freed(const Freed&) override {}
  bool learns_from_faults_alone() const override { return true; }

  std::vector<BlockRange> faulted(const Faulted& event, const PageTable& table) override {
    const BlockId block = event.blocks.first;
    if (table.state(block) == BlockState::empty) return {};  // A first touch has nothing to bring.
    // A kernel's helper threads (OpenMP's) fault as streams of their own.
    const auto own = streams_.find(event.stream);
    const auto found = own != streams_.end() ? own : streams_.find(last_);
    if (found == streams_.end() || found->second.current() == ExecutionId{}) return {};
    Running& running = found->second;
    BlockTable& known = table_of(running.current());
    known.faulted(block);
    if (!options_.prefetches || !running.wanted) return {};
    std::vector<BlockRange> prefetches;
    append(prefetches, in_ranges(known.after(block)));
    running.chains = true;
    go_on(running, prefetches);
    return prefetches;
  }

  Forecast kernel_ready(const KernelReady& event, bool wanted) override {
    last_ = event.launch.stream;
    Running& running = streams_[last_];
    if (running.current() != ExecutionId{}) {
      table_of(running.current()).ended();
      if (event.execution != ExecutionId{}) executions_.follows(running.last, event.execution);
    }
    forget_too_many();
    if (event.execution == ExecutionId{}) {
      running = {};
      return {.anew = true, .added = {}, .prefetches = {}, .births = {}};
    }
    running.last = then(running.last, event.execution);
    running.wanted = wanted;
    Forecast forecast;
    forecast.anew = !wanted || running.expected.empty() || running.expected.front() != event.execution;
    if (forecast.anew) {
      running.expected.clear();
      running.reached = 0;
      running.chains = false;
    } else {
      running.expected.pop_front();
      running.reached -= std::min<std::size_t>(running.reached, 1);
    }
    if (!wanted) return forecast;
    expect(running, forecast.added);
    go_on(running, forecast.prefetches);
    if (options_.pre_evicts) forecast.births = kBlockBytes;
    return forecast;
  }

 private:
  BlockTable& table_of(ExecutionId execution) { return tables_.try_emplace(execution, options_.shape).first->second; }

  void forget_too_many() {
    if (tables_.size() <= kMostTables) return;
    tables_.clear();
    executions_.clear();
  }

  // Section 5.1: nothing leaves that the next kernels are expected to use, as far as the execution table tells.
  void expect(Running& running, std::vector<ExpectedUse>& added) {
    ExecutionTable::Four last = running.last;
    for (const ExecutionId known : running.expected) last = then(last, known);
    while (running.expected.size() < options_.kernels_ahead) {
      const auto next = executions_.next(last);
      if (!next) return;
      last = then(last, *next);
      running.expected.push_back(*next);
      added.push_back(options_.pre_evicts ? table_of(*next).blocks() : ExpectedUse{});
    }
  }

  // Chaining: kernel by kernel, N ahead. The chain ends where no next kernel is known, until a fault begins another.
  void go_on(Running& running, std::vector<BlockRange>& prefetches) {
    if (!running.chains) return;
    for (; running.reached < running.expected.size(); ++running.reached)
      append(prefetches, table_of(running.expected[running.reached]).from_start());
    running.chains = running.expected.size() == options_.kernels_ahead;
  }

  FaultOptions options_;
  ExecutionTable executions_;
  std::unordered_map<ExecutionId, BlockTable> tables_;
  std::unordered_map<StreamId, Running> streams_;
  StreamId last_ = kNobody;  // on which a kernel became ready
};

}  // namespace

std::unique_ptr<OnlinePolicy> make_deepum_faults(Bytes, const Parameters& parameters) {
  const Parameters known = parameters.has("ahead") ? parameters : Parameters(kDeepumFaultsParameters);
  return std::make_unique<DeepumFaults>(FaultOptions{
      .kernels_ahead = known.count("ahead"),
      .shape = {.rows = known.count("rows"), .ways = known.count("assoc"), .successors = known.count("succs")},
      .prefetches = known.is_on("prefetch"),
      .pre_evicts = known.is_on("pre-evict")});
}

}  // namespace spillway
