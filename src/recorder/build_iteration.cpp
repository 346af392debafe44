#include <fmt/format.h>

#include <array>
#include <limits>

#include "base/check.h"
#include "recorder/iteration.h"

namespace spillway {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// What the iteration does with one storage. Kernels are counted through all its segments.
struct Life {
  StorageId id;
  TensorLabel label{};
  Bytes bytes;
  bool born_inside = false;   // in this iteration, in a kernel or outside
  std::size_t birth = kNone;  // the kernel that made it
  std::size_t first_use = kNone, last_use = kNone;
  std::size_t death = kNone;
  bool reads_first = false;                     // the first use reads bytes that no kernel here wrote
  std::array<bool, 4> read_in{}, written_in{};  // by phase
  std::size_t heir = kNone;                     // the life that takes its place in the next iteration
  bool is_heir = false;
  bool persistent = false;
  TensorId tensor;
  bool in_trace = false;

  bool touched_only_in(Phase phase) const {
    for (std::size_t p = 0; p < read_in.size(); ++p)
      if (p != static_cast<std::size_t>(phase) && (read_in[p] || written_in[p])) return false;
    return true;
  }
  bool written() const { return written_in[0] || written_in[1] || written_in[2] || written_in[3]; }
  bool uses(Phase phase) const {
    return read_in[static_cast<std::size_t>(phase)] || written_in[static_cast<std::size_t>(phase)];
  }
};

class Builder {
 public:
  Builder(const Iteration& iteration, const std::vector<KernelTime>& times) : iteration_(iteration), times_(times) {}

  RecordedIteration build() {
    CHECK(!iteration_.segments.empty() && (!iteration_.steady || !iteration_.before.empty()));
    for (const auto* segments : {&iteration_.before, &iteration_.segments})
      for (const Segment& segment : *segments) check_segment(segment);
    collect();
    CHECK(times_.size() == count_);
    apply_deaths_at_the_end();
    find_heirs();
    settle_the_rest();
    make_tensors();
    make_kernels();
    result_.trace = std::move(trace_);
    return std::move(result_);
  }

 private:
  std::size_t life_of(const SegmentStorage& storage) {
    const auto [place, is_new] = index_.try_emplace(storage.id, lives_.size());
    if (is_new) {
      Life& life = lives_.emplace_back();
      life.bytes = storage.bytes;
      life.id = storage.id;
      life.label = storage.label;
      life.born_inside = storage.birth_segment >= iteration_.segments.front().number;
    }
    return place->second;
  }

  void collect() {
    for (const Segment& segment : iteration_.segments)
      for (const SegmentKernel& kernel : segment.kernels) {
        const std::size_t k = count_++;
        const auto phase = static_cast<std::size_t>(kernel.phase);
        for (const SegmentAccess& access : segment.accesses_of(kernel)) {
          Life& life = lives_[life_of(segment.storages[access.storage])];
          if (life.first_use == kNone) life.first_use = k;
          if (life.birth == kNone && life.last_use == kNone) life.reads_first = access.reads;
          life.last_use = k;
          life.read_in[phase] |= access.reads;
          life.written_in[phase] |= access.writes;
        }
        for (const std::uint32_t birth : segment.births_of(kernel)) {
          Life& life = lives_[life_of(segment.storages[birth])];
          life.birth = k;
          if (life.first_use == kNone) life.first_use = k;
          life.last_use = k;
          life.written_in[phase] = true;
        }
        for (const std::uint32_t freed : segment.frees_of(kernel)) lives_[life_of(segment.storages[freed])].death = k;
      }
  }

  // What dies between two iterations dies after the last kernel. Seen after the iteration before: after this one the
  // script may have ended, or done something else.
  void apply_deaths_at_the_end() {
    if (!iteration_.steady || count_ == 0) return;
    const Segment& last = iteration_.before.back();
    for (const std::uint32_t freed : last.frees_of(last.kernels.back())) {
      const auto role = iteration_.roles.find(last.storages[freed].id);
      if (role == iteration_.roles.end()) continue;
      const auto life = index_.find(role->second);
      if (life == index_.end()) continue;
      Life& dies = lives_[life->second];
      if (dies.born_inside && dies.death == kNone) dies.death = count_ - 1;
    }
  }

  void find_heirs() {
    const std::uint64_t start = iteration_.before.empty() ? 0 : iteration_.before.front().number;
    for (const Segment& segment : iteration_.before)
      for (const SegmentStorage& storage : segment.storages) {
        if (storage.birth_segment < start) continue;
        const auto role = iteration_.roles.find(storage.id);
        const auto old = index_.find(storage.id);
        if (role == iteration_.roles.end() || old == index_.end()) continue;
        const auto heir = index_.find(role->second);
        if (heir == index_.end() || heir->second == old->second) continue;
        Life& young = lives_[heir->second];
        if (lives_[old->second].born_inside || young.death != kNone || young.is_heir) continue;
        lives_[old->second].heir = heir->second;
        young.is_heir = true;
      }
  }

  void settle_the_rest() {
    for (Life& life : lives_) {
      const auto role = iteration_.roles.find(life.id);
      const bool same_before = !iteration_.steady || (role != iteration_.roles.end() && role->second == life.id);
      life.persistent = !life.born_inside && life.death == kNone && life.heir == kNone && same_before;
      if (life.persistent || life.is_heir) continue;
      // Another batch of a data set that lies in memory: as far as this iteration goes it comes and goes. And whatever
      // has no end yet, although it is made anew each time, has one at the end.
      if (life.death == kNone) life.death = life.born_inside || life.heir != kNone ? count_ - 1 : life.last_use;
    }
  }

  TensorKind kind_of(const Life& life) const {
    const bool only_in_optimizer = life.touched_only_in(Phase::optimizer);
    if (life.persistent) {
      if (only_in_optimizer) return TensorKind::optimizer_state;
      const bool used_by_optimizer = life.uses(Phase::optimizer);
      const auto written_in = [&](Phase phase) { return life.written_in[static_cast<std::size_t>(phase)]; };
      if (used_by_optimizer && written_in(Phase::backward)) return TensorKind::gradient;
      const bool written_elsewhere = written_in(Phase::forward) || written_in(Phase::backward);
      return written_elsewhere ? TensorKind::other : TensorKind::weight;
    }
    if (life.birth == kNone && life.heir == kNone) return TensorKind::input;
    if (life.birth == life.last_use && life.death == life.birth) return TensorKind::workspace;
    const Phase born = life.birth == kNone ? phase_of(lives_[life.heir].birth) : phase_of(life.birth);
    if (born == Phase::backward && (life.uses(Phase::optimizer) || life.is_heir || life.heir != kNone))
      return TensorKind::gradient;
    return born == Phase::optimizer ? TensorKind::other : TensorKind::activation;
  }

  Phase phase_of(std::size_t kernel) const {
    if (kernel == kNone) return Phase::other;
    for (const Segment& segment : iteration_.segments) {
      if (kernel < segment.kernels.size()) return segment.kernels[kernel].phase;
      kernel -= segment.kernels.size();
    }
    return Phase::other;
  }

  // One tensor for old and new where the old one is dead before the new one is born.
  bool is_one_tensor(const Life& old) const {
    const Life& young = lives_[old.heir];
    const std::size_t begin = young.birth != kNone ? young.birth : young.first_use;
    return old.death != kNone && old.death < begin;
  }

  void make_tensors() {
    for (Life& life : lives_) {
      const bool used = life.first_use != kNone;
      if (life.heir != kNone && is_one_tensor(life)) continue;  // shares its heir's
      if (!used && life.heir == kNone) continue;                // nothing is known about it but that it dies
      life.in_trace = true;
      life.tensor = {static_cast<std::uint32_t>(trace_.tensors.size())};
      const TensorKind kind = kind_of(life);
      trace_.tensors.push_back({.name = name_of(kind),
                                .bytes = life.bytes,
                                .kind = kind,
                                .persistent = life.persistent,
                                .carried_from = std::nullopt});
    }
    for (Life& life : lives_) {
      if (life.heir == kNone) continue;
      const TensorId young = lives_[life.heir].tensor;
      if (!life.in_trace) life.tensor = young;
      life.in_trace = true;
      trace_.tensors[life.tensor.value].carried_from = young;
    }
    // Read before any kernel wrote it: its bytes come from outside (Python's scalars, data made by what is no kernel).
    for (const Life& life : lives_)
      if (life.in_trace && life.birth == kNone && life.reads_first && !life.persistent && life.heir == kNone)
        trace_.tensors[life.tensor.value].kind = TensorKind::input;
  }

  std::string name_of(TensorKind kind) {
    constexpr std::array kNames{"weight", "gradient", "optimizer_state", "activation", "input", "workspace", "other"};
    const auto place = static_cast<std::size_t>(kind);
    return fmt::format("{}{}", kNames[place], counts_[place]++);
  }

  TensorId tensor_of(const Segment& segment, const SegmentAccess& access) const {
    return lives_[index_.at(segment.storages[access.storage].id)].tensor;
  }

  // Without its statistics, unless something else of what it reads or writes lies in the same memory.
  std::optional<Replayable> replay_of(const Segment& segment, const SegmentKernel& kernel) const {
    Replayable replay;
    for (const std::uint32_t birth : segment.births_of(kernel))
      if (segment.storages[birth].written_outside) return std::nullopt;
    for (const SegmentAccess& access : segment.accesses_of(kernel))
      if (const TensorId tensor = tensor_of(segment, access); access.statistic && !replay.leaves_out(tensor))
        replay.omits.push_back(tensor);
    for (const SegmentAccess& access : segment.accesses_of(kernel))
      if (!access.statistic && (access.writes || replay.leaves_out(tensor_of(segment, access)))) return std::nullopt;
    return replay;
  }

  void make_kernels() {
    std::size_t k = 0;
    for (const Segment& segment : iteration_.segments)
      for (const SegmentKernel& from : segment.kernels) {
        Kernel& kernel = trace_.kernels.emplace_back();
        result_.signatures.push_back(signature_of(from.name, from.shapes));
        result_.births.emplace_back();
        kernel.name = from.name;
        kernel.phase = from.phase;
        kernel.duration = times_[k].duration;
        kernel.gap = times_[k].gap;
        if (from.shape_list != nullptr) kernel.shapes = *from.shape_list;
        if (from.replayable) kernel.replay = replay_of(segment, from);
        for (const SegmentAccess& access : segment.accesses_of(from)) {
          const TensorId tensor = tensor_of(segment, access);
          CHECK(lives_[index_.at(segment.storages[access.storage].id)].in_trace);
          const Access entry{.tensor = tensor, .begin = access.begin, .end = access.end, .sparse = access.sparse};
          if (access.reads) kernel.reads.push_back(entry);
          if (access.writes) kernel.writes.push_back(entry);
        }
        for (const std::uint32_t birth : segment.births_of(from)) {
          const Life& life = lives_[index_.at(segment.storages[birth].id)];
          kernel.writes.push_back({.tensor = life.tensor, .begin = {}, .end = life.bytes});
          result_.births.back().push_back(life.tensor);
        }
        ++k;
      }
    for (const Life& life : lives_)
      if (life.in_trace && life.death != kNone) trace_.kernels[life.death].frees.push_back(life.tensor);
    result_.storages.resize(trace_.tensors.size());
    result_.labels.resize(trace_.tensors.size());
    for (const Life& life : lives_)  // The old life of a tensor that is carried comes before the young one.
      if (life.in_trace && (life.heir == kNone || !is_one_tensor(life))) {
        result_.storages[life.tensor.value] = life.id;
        result_.labels[life.tensor.value] = life.label;
      }
    std::uint32_t count = 0;
    for (const Segment& segment : iteration_.segments)
      result_.anchors.push_back(count += static_cast<std::uint32_t>(segment.kernels.size()));
  }

  const Iteration& iteration_;
  const std::vector<KernelTime>& times_;
  std::vector<Life> lives_;
  std::unordered_map<StorageId, std::size_t> index_;
  std::size_t count_ = 0;
  std::array<std::size_t, 7> counts_{};
  Trace trace_;
  RecordedIteration result_;
};

}  // namespace

std::uint64_t signature_of(std::string_view name, std::uint64_t shapes) {
  return (std::hash<std::string_view>{}(name) ^ shapes) * 0x9e3779b97f4a7c15u;
}

RecordedIteration build_iteration(const Iteration& iteration, const std::vector<KernelTime>& times) {
  return Builder(iteration, times).build();
}

}  // namespace spillway
