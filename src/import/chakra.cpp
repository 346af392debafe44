#include "import/chakra.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "import/allocations.h"
#include "import/assembly.h"
#include "import/operator_times.h"

namespace spillway {
namespace {

constexpr std::int64_t kSnapshotTick = 1000;  // snapshots' times are cut off to microseconds

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// They change all of a tensor without looking at it.
bool only_fills(std::string_view name) {
  return is_one_of(name, {"aten::zero_", "aten::fill_", "aten::copy_", "aten::normal_", "aten::uniform_",
                          "aten::random_", "aten::bernoulli_"});
}

// They make tensors without computing them.
bool only_makes(std::string_view name) {
  return name.starts_with("aten::empty") || name.starts_with("aten::new_empty");
}

bool is_weight(std::string_view argument) {
  return is_one_of(argument, {"weight", "bias", "running_mean", "running_var"});
}

class Joiner {
 public:
  Joiner(const std::vector<EtNode>& nodes, const Kineto& kineto, const std::string& where, const std::string& name)
      : nodes_(nodes), kineto_(kineto), where_(where), assembly_(name, "chakra") {}

  Result<Trace> run() {
    find_operators();
    find_device();
    choose_step();
    if (operators_.empty())
      return wrong("it has no operators with tensors; start the observer before the iteration, stop it after");
    TRY(times_, times_of(nodes_, operators_, kineto_, where_));
    if (!gpu_ && !kineto_.snapshot.empty())
      return wrong(fmt::format("its tensors are on the CPU, and {} is of GPUs", kineto_.snapshot));
    if (gpu_ && std::ranges::none_of(times_, [](const auto& time) { return time && time->gpu; }))
      return wrong("its tensors are on a GPU, and the profile has no kernels; profile with ProfilerActivity.CUDA, too");
    TRY_VOID(drop_unseen());
    find_begin();
    for (std::size_t at = 0; at < operators_.size(); ++at) {
      add(at);
      if (assembly_.too_large()) return wrong("it has more uses of tensors than we read; record one iteration");
    }
    for (const auto& [id, weight] : outside_)
      if (weight || (assembly_.read_first(id) && assembly_.written(id)))
        assembly_.keep(
            id, assembly_.first_phase(id) == Phase::optimizer ? TensorKind::optimizer_state : TensorKind::weight);
    TRY_VOID(find_deaths());
    TRY(Trace trace, std::move(assembly_).finish("cannot import " + where_));
    trace.estimated = kineto_.estimated;
    return trace;
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  std::unexpected<Error> wrong(std::string_view what) const {
    return fail(Errc::bad_input, fmt::format("cannot import {}: {}", where_, what));
  }

  // Of nested operators the outermost. Parents began before their children, so they come first.
  void find_operators() {
    std::unordered_map<std::uint64_t, std::size_t> places;
    owners_.assign(nodes_.size(), kNone);
    phases_.assign(nodes_.size(), Phase::forward);
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const EtNode& node = nodes_[n];
      if (const auto parent = places.find(node.parent); parent != places.end()) {
        owners_[n] = owners_[parent->second];
        phases_[n] = phases_[parent->second];
      }
      if (node.name.starts_with("autograd::engine::evaluate_function")) phases_[n] = Phase::backward;
      if (node.name.starts_with("Optimizer.")) phases_[n] = Phase::optimizer;
      places.emplace(node.id, n);
      if (owners_[n] == kNone && !node.schema.empty()) {
        owners_[n] = n;
        operators_.push_back(n);
      }
    }
  }

  // The GPU whose tensors come first, or else the CPU.
  void find_device() {
    for (const EtNode& node : nodes_)
      for (const auto* tensors : {&node.inputs, &node.outputs})
        for (const EtTensor& tensor : *tensors)
          if (!gpu_ && !is_one_of(tensor.device, {"cpu", "meta", ""})) {
            gpu_ = true;
            device_ = tensor.device;
          }
  }

  // Of several ProfilerStep#N the one with the most operators, the last of these.
  void choose_step() {
    std::vector<std::size_t> begins;
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      if (nodes_[n].name.starts_with("ProfilerStep#")) begins.push_back(n);
    if (begins.empty()) return;
    begins.push_back(nodes_.size());
    std::pair<std::size_t, std::size_t> best{};
    for (std::size_t step = 0; step + 1 < begins.size(); ++step) {
      const auto from =
          static_cast<std::size_t>(std::ranges::lower_bound(operators_, begins[step]) - operators_.begin());
      const auto to =
          static_cast<std::size_t>(std::ranges::lower_bound(operators_, begins[step + 1]) - operators_.begin());
      if (to - from < best.second - best.first) continue;
      best = {from, to};
      step_ = begins[step];
    }
    operators_ = {operators_.begin() + static_cast<std::ptrdiff_t>(best.first),
                  operators_.begin() + static_cast<std::ptrdiff_t>(best.second)};
  }

  // What the profiler did not see, because it ran for less long than the observer.
  Result<> drop_unseen() {
    const auto seen = [](const auto& time) { return time.has_value(); };
    const auto from = std::ranges::find_if(times_, seen) - times_.begin();
    auto to = std::ssize(times_);
    while (!times_[static_cast<std::size_t>(to) - 1]) --to;
    times_ = {times_.begin() + from, times_.begin() + to};
    operators_ = {operators_.begin() + from, operators_.begin() + to};
    for (std::size_t at = 0; at < times_.size(); ++at)
      if (!times_[at])
        return wrong(fmt::format("the profile lacks the operator '{}' (node {}); name the two files of one run",
                                 nodes_[operators_[at]].name, nodes_[operators_[at]].id));
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      if (owners_[n] != kNone) within_[owners_[n]].push_back(n);
    return {};
  }

  // The first kernel could have started when its step had begun and all kernels before it had ended. Nobody knows of a
  // step that the profiler did not see begin.
  void find_begin() {
    if (!step_) return;
    const auto step = times_of(nodes_, {*step_}, kineto_, where_);
    if (!step) return;
    end_ = step->front()->host.begin;
    if (!gpu_) return;
    const auto first = std::ranges::find_if(times_, [](const auto& time) { return time->gpu.has_value(); });
    for (const KinetoKernel& kernel : kineto_.kernels)
      if (kernel.time.begin < (*first)->gpu->begin) end_ = std::max(*end_, kernel.time.end);
  }

  bool is_ours(const EtTensor& tensor) const { return gpu_ ? tensor.device == device_ : tensor.device == "cpu"; }

  struct Uses {
    std::vector<const EtTensor*> reads = {}, writes = {}, makes = {};
  };

  // What an operator does, and those in it. A storage that it was not given is made by it.
  Uses uses_of(std::size_t owner) const {
    Uses uses;
    std::unordered_set<std::uint64_t> given;
    for (const EtTensor& tensor : nodes_[owner].inputs) given.insert(tensor.storage);
    for (const std::size_t n : within_.at(owner)) {
      const EtNode& node = nodes_[n];
      const std::vector<EtArgument> arguments = arguments_of(node.schema);
      for (const EtTensor& tensor : node.inputs) {
        if (!is_ours(tensor)) continue;
        const bool written = tensor.argument < arguments.size() && arguments[tensor.argument].written;
        if (!given.contains(tensor.storage)) uses.makes.push_back(&tensor);
        if (written && given.contains(tensor.storage)) uses.writes.push_back(&tensor);
        const bool looked_at = !written || (!only_fills(node.name) && arguments[tensor.argument].name != "out");
        if (n == owner && looked_at) uses.reads.push_back(&tensor);
      }
      for (const EtTensor& tensor : node.outputs)
        if (is_ours(tensor) && !given.contains(tensor.storage)) uses.makes.push_back(&tensor);
    }
    return uses;
  }

  void add(std::size_t at) {
    const EtNode& node = nodes_[operators_[at]];
    const Uses uses = uses_of(operators_[at]);
    if (uses.makes.empty() && uses.writes.empty()) return;  // views, and numbers that the script reads
    const bool kernel = !only_makes(node.name);
    if (kernel) begin(at);
    const std::vector<EtArgument> arguments = arguments_of(node.schema);
    for (const EtTensor* tensor : uses.reads) {
      if (!kernel) break;
      const TensorId id = outside(*tensor);
      if (const auto place = outside_.find(id); place != outside_.end() && tensor->argument < arguments.size())
        place->second = place->second || is_weight(arguments[tensor->argument].name);
      assembly_.read(id);
      if (!tensor->sizes.empty()) assembly_.shape(tensor->sizes);
    }
    for (const EtTensor* tensor : uses.writes)
      if (kernel) assembly_.write(outside(*tensor));
    std::unordered_map<std::uint64_t, std::size_t> made;  // in births_, by storage
    for (const EtTensor* tensor : uses.makes) {
      if (made.try_emplace(tensor->storage, births_.size()).second) {
        lives_[tensor->storage] = assembly_.add(fmt::format("storage{}", tensor->storage), tensor->bytes, true);
        births_.push_back({.tensor = lives_[tensor->storage], .at = at, .bytes = tensor->bytes});
      }
      Birth& birth = births_[made[tensor->storage]];
      birth.bytes = std::max(birth.bytes, tensor->bytes);
      const TensorId id = birth.tensor;
      assembly_.grow(id, tensor->bytes);
      if (kernel) assembly_.write(id);
    }
  }

  // A tensor that an operator is given: of an earlier one, or from before the iteration.
  TensorId outside(const EtTensor& tensor) {
    const auto [place, is_new] = lives_.try_emplace(tensor.storage);
    if (is_new) {
      place->second = assembly_.add(fmt::format("storage{}", tensor.storage), tensor.bytes);
      outside_.emplace(place->second, false);
    }
    assembly_.grow(place->second, tensor.bytes);
    return place->second;
  }

  void begin(std::size_t at) {
    const OperatorTime& time = *times_[at];
    const std::size_t owner = operators_[at];
    const std::optional<KinetoSpan> span = gpu_ ? time.gpu : time.host;
    std::int64_t gap = 0;
    if (span) {
      gap = end_ ? std::max<std::int64_t>(span->begin - *end_, 0) : 0;
      end_ = std::max(end_.value_or(span->end), span->end);
    }
    const std::int64_t duration = gpu_ ? time.busy : time.host.end - time.host.begin;
    assembly_.begin(nodes_[owner].name, phases_[owner], Nanos{static_cast<std::uint64_t>(duration)},
                    Nanos{static_cast<std::uint64_t>(gap)});
    began_.push_back(std::max(time.host.begin, began_.empty() ? time.host.begin : began_.back()));
  }

  // When the allocator got the memory back of what an operator made: told apart by its size and the time.
  Result<> find_deaths() {
    std::vector<KinetoMemory> memory;
    for (const KinetoMemory& one : kineto_.memory)
      if (gpu_ ? !one.host && one.device == device_number() : one.host) memory.push_back(one);
    const bool snapshot = !kineto_.snapshot.empty();
    if ((memory.empty() && !snapshot) || began_.empty()) return {};
    Allocations allocations(std::move(memory), gpu_ ? kCudaMultiple : 1);
    std::size_t found = 0;
    for (const Birth& birth : births_) {
      KinetoSpan host = times_[birth.at]->host;
      if (snapshot) host.begin -= kSnapshotTick;
      const auto claim = allocations.claim(birth.bytes, host);
      if (!claim) continue;
      ++found;
      if (snapshot) assembly_.grow(birth.tensor, Bytes{static_cast<std::uint64_t>(claim->given.bytes)});
      if (!claim->given.made_by.empty()) assembly_.rename(birth.tensor, claim->given.made_by);
      const auto after = claim->freed ? std::ranges::upper_bound(began_, *claim->freed) : began_.end();
      if (after != began_.begin())
        assembly_.release(birth.tensor, static_cast<std::size_t>(after - began_.begin()) - 1);
    }
    if (snapshot && 2 * found < births_.size())
      return wrong(
          fmt::format("of {} tensors that its operators make, {} has {}; name the files of one run, and let "
                      "the snapshot keep more events (max_entries)",
                      births_.size(), kineto_.snapshot, found));
    return {};
  }

  // Of "cuda:1" the 1.
  std::int64_t device_number() const {
    std::int64_t number = 0;
    const char* begin = device_.c_str() + std::min(device_.find(':'), device_.size() - 1) + 1;
    std::from_chars(begin, device_.c_str() + device_.size(), number);
    return number;
  }

  // What an operator made.
  struct Birth {
    TensorId tensor;
    std::size_t at = 0;  // in operators_
    Bytes bytes = {};
  };
  struct Hash {
    std::size_t operator()(TensorId id) const { return id.value; }
  };

  const std::vector<EtNode>& nodes_;
  const Kineto& kineto_;
  const std::string& where_;
  Assembly assembly_;
  std::vector<std::size_t> owners_;  // by node: the outermost operator around it
  std::vector<Phase> phases_;        // by node
  std::optional<std::size_t> step_;  // the node that it is the step of
  std::vector<std::size_t> operators_;
  std::vector<std::optional<OperatorTime>> times_;  // of operators_
  std::unordered_map<std::size_t, std::vector<std::size_t>> within_;
  bool gpu_ = false;
  std::string device_;
  std::unordered_map<std::uint64_t, TensorId> lives_;  // by storage, the last one there
  std::unordered_map<TensorId, bool, Hash> outside_;   // from before the iteration; whether some operator says weight
  std::vector<Birth> births_;
  std::vector<std::int64_t> began_;  // by kernel: when the host called it
  std::optional<std::int64_t> end_;  // of the kernels so far
};

}  // namespace

Result<Trace> join_chakra(const std::vector<EtNode>& nodes, const Kineto& kineto, const std::string& where,
                          const std::string& name) {
  return Joiner(nodes, kineto, where, name).run();
}

}  // namespace spillway
