#include "plan/recomputation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <unordered_map>
#include <utility>

#include "analysis/lifetimes.h"
#include "trace/validate.h"

namespace spillway {
namespace {

std::uint32_t count_of(const std::vector<Kernel>& kernels) { return static_cast<std::uint32_t>(kernels.size()); }

bool touches(const Kernel& kernel, TensorId tensor) {
  const auto is_it = [&](const Access& access) { return access.tensor == tensor; };
  return std::ranges::any_of(kernel.reads, is_it) || std::ranges::any_of(kernel.writes, is_it);
}

class Rewriter {
 public:
  Rewriter(const Trace& trace, const Plan& plan, const std::string& where)
      : trace_(trace),
        plan_(plan),
        where_(where),
        lifetimes_(analyse_lifetimes(trace)),
        writers_(trace.tensors.size()),
        frees_(trace.tensors.size()) {
    for (std::uint32_t at = 0; at < count_of(trace.kernels); ++at) {
      for (const Access& write : trace.kernels[at].writes) writers_[write.tensor.value].push_back(at);
      for (const TensorId tensor : trace.kernels[at].frees) frees_[tensor.value] = at;
    }
  }

  Result<Recomputed> run() {
    const auto is_kernel = [&](KernelId kernel) { return kernel.value < trace_.kernels.size(); };
    const auto is_known = [&](const auto& move, KernelId kernel) {
      return is_kernel(kernel) && (!move.awaited_by || is_kernel(*move.awaited_by));
    };
    if (!std::ranges::all_of(plan_.evictions, [&](const Eviction& one) { return is_known(one, one.after); }) ||
        !std::ranges::all_of(plan_.prefetches, [&](const Prefetch& one) { return is_known(one, one.at); }))
      return fail(Errc::bad_input,
                  fmt::format("{}: a move names a kernel beyond the trace's {}", where_, trace_.kernels.size()));
    for (std::size_t index = 0; index < plan_.recomputations.size(); ++index) {
      TRY_VOID(check(index));
      before_[plan_.recomputations[index].before.value].push_back(index);
    }
    rewrite_kernels();
    rewrite_moves();
    if (const auto good = validate(out_.trace, where_); !good)
      return fail(Errc::bad_input, fmt::format("{}: after its recomputations the iteration is no more: {}", where_,
                                               good.error().message));
    return std::move(out_);
  }

 private:
  std::unexpected<Error> wrong(std::size_t index, std::string why) {
    return fail(Errc::bad_input, fmt::format("{}: recomputations[{}]: {}", where_, index, why));
  }

  // The last kernel before `kernel` that wrote to the tensor.
  std::optional<std::uint32_t> writer_before(TensorId tensor, std::uint32_t kernel) const {
    const auto& writers = writers_[tensor.value];
    const auto later = std::ranges::lower_bound(writers, kernel);
    return later == writers.begin() ? std::nullopt : std::optional(*std::prev(later));
  }

  Result<> check(std::size_t index) {
    const Recomputation& one = plan_.recomputations[index];
    const std::uint32_t kernels = count_of(trace_.kernels);
    if (one.tensor.value >= trace_.tensors.size())
      return wrong(index, fmt::format("there is no tensor {}", one.tensor.value));
    if (one.before.value >= kernels || one.drop_after >= one.before)
      return wrong(index, fmt::format("drop_after {} and before {} must be kernels in this order; the trace has {}",
                                      one.drop_after.value, one.before.value, kernels));
    if (one.kernels.empty()) return wrong(index, "it names no kernels that would make the tensor again");
    const Tensor& tensor = trace_[one.tensor];
    if (tensor.persistent || tensor.carried_from)
      return wrong(index, fmt::format("tensor {} outlives the iteration, so nothing makes it again", one.tensor.value));
    if (!touches(trace_[one.drop_after], one.tensor) || !touches(trace_[one.before], one.tensor))
      return wrong(index, fmt::format("kernels {} and {} must use tensor {}, and none between them",
                                      one.drop_after.value, one.before.value, one.tensor.value));
    for (std::uint32_t at = one.drop_after.value; at < one.before.value; ++at)
      if ((at > one.drop_after.value && touches(trace_.kernels[at], one.tensor)) || frees_[one.tensor.value] == at)
        return wrong(index, fmt::format("kernel {} uses or frees tensor {}", at, one.tensor.value));
    if (writer_before(one.tensor, one.before.value) != one.kernels.back().value)
      return wrong(
          index, fmt::format("tensor {} is not last written by kernel {}", one.tensor.value, one.kernels.back().value));
    const KernelId last = one.kernels.back();
    if (trace_[last].replay && trace_[last].replay->leaves_out(one.tensor))
      return wrong(index,
                   fmt::format("kernel {} leaves tensor {} out when it is replayed", last.value, one.tensor.value));
    return check_chain(index);
  }

  Result<> check_chain(std::size_t index) {
    const Recomputation& one = plan_.recomputations[index];
    std::unordered_map<TensorId, std::uint32_t> made;  // by which kernel of the chain
    for (const KernelId id : one.kernels) {
      if (id.value >= trace_.kernels.size() || id >= one.before)
        return wrong(index, fmt::format("kernel {} comes later than {}", id.value, one.before.value));
      const Kernel& kernel = trace_[id];
      if (!kernel.replay) return wrong(index, fmt::format("kernel {}, {}, cannot be replayed", id.value, kernel.name));
      for (const Access& read : kernel.reads) {
        if (kernel.replay->leaves_out(read.tensor)) continue;
        const auto first_time = writer_before(read.tensor, id.value);
        const auto again = made.find(read.tensor);
        const auto now =
            again != made.end() ? std::optional(again->second) : writer_before(read.tensor, one.before.value);
        const bool is_dead = again == made.end() && lifetimes_.tensors[read.tensor.value].is_dead_before(one.before);
        if (now != first_time || is_dead)
          return wrong(
              index, fmt::format("kernel {} reads tensor {}, which is {} before kernel {}", id.value, read.tensor.value,
                                 is_dead ? "dead" : "another one by now", one.before.value));
      }
      for (const Access& write : kernel.writes)
        if (!kernel.replay->leaves_out(write.tensor)) made[write.tensor] = id.value;
    }
    return {};
  }

  TensorId now(TensorId tensor) const {
    const auto renamed = names_.find(tensor);
    return renamed == names_.end() ? tensor : renamed->second;
  }

  TensorId new_tensor(TensorId like) {
    const TensorId id{static_cast<std::uint32_t>(out_.trace.tensors.size())};
    Tensor copy = trace_[like];
    copy.name += " (again)";
    copy.persistent = false;
    copy.carried_from.reset();
    out_.trace.tensors.push_back(std::move(copy));
    return id;
  }

  void replay(const Recomputation& one) {
    std::map<TensorId, TensorId> made;
    std::vector<TensorId> scratch;
    for (const KernelId id : one.kernels) {
      const Kernel& original = trace_[id];
      Kernel again = original;
      again.gap = {};
      again.frees.clear();
      for (auto* accesses : {&again.reads, &again.writes})
        std::erase_if(*accesses, [&](const Access& access) { return original.replay->leaves_out(access.tensor); });
      for (Access& read : again.reads) {
        const auto found = made.find(read.tensor);
        read.tensor = found != made.end() ? found->second : now(read.tensor);
      }
      for (Access& write : again.writes) {
        const TensorId tensor = write.tensor;
        if (!made.contains(tensor)) {
          made[tensor] = new_tensor(tensor);
          if (tensor != one.tensor) scratch.push_back(made[tensor]);
        }
        write.tensor = made[tensor];
      }
      if (id == one.kernels.back()) again.frees = scratch;
      out_.replaying += again.duration;
      add(std::move(again), id, true);
    }
    names_[one.tensor] = made.at(one.tensor);
    lives_[one.tensor].emplace_back(one.before, made.at(one.tensor));
  }

  void add(Kernel kernel, KernelId original, bool is_replay) {
    kernel.replay.reset();  // It names tensors of the trace before, and nothing is replayed twice over.
    out_.trace.kernels.push_back(std::move(kernel));
    out_.is_replay.push_back(is_replay);
    out_.original_of.push_back(original);
  }

  void rewrite_kernels() {
    out_.trace.name = trace_.name;
    out_.trace.source = trace_.source;
    out_.trace.tensors = trace_.tensors;
    std::vector<std::vector<TensorId>> drops(trace_.kernels.size());
    for (const Recomputation& one : plan_.recomputations) drops[one.drop_after.value].push_back(one.tensor);
    for (std::uint32_t at = 0; at < count_of(trace_.kernels); ++at) {
      for (const std::size_t index : before_[at]) replay(plan_.recomputations[index]);
      Kernel kernel = trace_.kernels[at];
      for (Access& read : kernel.reads) read.tensor = now(read.tensor);
      for (Access& write : kernel.writes) write.tensor = now(write.tensor);
      for (TensorId& tensor : kernel.frees) tensor = now(tensor);
      for (const TensorId tensor : drops[at]) kernel.frees.push_back(now(tensor));
      place_.push_back({count_of(out_.trace.kernels)});
      add(std::move(kernel), {at}, false);
    }
  }

  // What the tensor is called when this kernel runs.
  TensorId name_at(TensorId tensor, KernelId kernel) const {
    const auto lives = lives_.find(tensor);
    if (lives == lives_.end()) return tensor;
    for (const auto& [since, name] : std::views::reverse(lives->second))
      if (since <= kernel) return name;
    return tensor;
  }

  void rewrite_moves() {
    out_.plan = plan_;
    out_.plan.recomputations.clear();
    out_.plan.reckoned.reset();
    const auto rename = [&](auto& move, KernelId& kernel) {
      move.tensor = name_at(move.tensor, kernel);
      kernel = place_[kernel.value];
      if (move.awaited_by) move.awaited_by = place_[move.awaited_by->value];
    };
    for (Eviction& eviction : out_.plan.evictions) rename(eviction, eviction.after);
    for (Prefetch& prefetch : out_.plan.prefetches) rename(prefetch, prefetch.at);
  }

  const Trace& trace_;
  const Plan& plan_;
  const std::string& where_;
  Lifetimes lifetimes_;
  std::vector<std::vector<std::uint32_t>> writers_;                     // by tensor: kernels, ascending
  std::vector<std::optional<std::uint32_t>> frees_;                     // by tensor: the kernel that frees it
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> before_;  // by kernel: the recomputations before it
  std::unordered_map<TensorId, TensorId> names_;                        // by the trace's name: what it is called now
  std::unordered_map<TensorId, std::vector<std::pair<KernelId, TensorId>>> lives_;  // since when it has which name
  std::vector<KernelId> place_;                                                     // by kernel of the trace
  Recomputed out_;
};

}  // namespace

std::uint64_t Recomputed::replays() const { return static_cast<std::uint64_t>(std::ranges::count(is_replay, true)); }

Result<Recomputed> with_recomputations(const Trace& trace, const Plan& plan, const std::string& where) {
  return Rewriter(trace, plan, where).run();
}

}  // namespace spillway
