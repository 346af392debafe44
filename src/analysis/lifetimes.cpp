#include "analysis/lifetimes.h"

#include <algorithm>

#include "base/check.h"

namespace spillway {
namespace {

// The kernels between two uses, going round the iteration's end if the period does.
std::uint32_t kernels_between(const InactivePeriod& period, std::size_t kernels) {
  const auto count = static_cast<std::uint32_t>(kernels);
  return (period.wraps ? period.before.value + count : period.before.value) - period.after.value - 1;
}

class Analysis {
 public:
  explicit Analysis(const Trace& trace) : trace_(trace) {
    result_.tensors.resize(trace.tensors.size());
    result_.births.resize(trace.kernels.size());
    result_.deaths.resize(trace.kernels.size());
    freed_at_.resize(trace.tensors.size());
  }

  Lifetimes run() {
    collect_uses();
    collect_ends();
    for (std::uint32_t t = 0; t < result_.tensors.size(); ++t) set_birth_and_death(TensorId{t});
    for (std::uint32_t t = 0; t < result_.tensors.size(); ++t) add_periods(TensorId{t});
    add_live_bytes();
    return std::move(result_);
  }

 private:
  Lifetime& lifetime(TensorId id) { return result_.tensors[id.value]; }
  bool carried_from_itself(TensorId id) const { return trace_[id].carried_from == id; }

  void collect_uses() {
    for (std::uint32_t k = 0; k < trace_.kernels.size(); ++k) {
      Bytes working_set;
      const Kernel& kernel = trace_.kernels[k];
      for (const auto* accesses : {&kernel.reads, &kernel.writes})
        for (const Access& access : *accesses) {
          std::vector<KernelId>& uses = lifetime(access.tensor).uses;
          if (!uses.empty() && uses.back() == KernelId{k}) continue;
          uses.push_back(KernelId{k});
          working_set += trace_[access.tensor].bytes;
        }
      result_.working_set.push_back(working_set);
      for (const TensorId freed : kernel.frees) freed_at_[freed.value] = KernelId{k};
    }
  }

  void collect_ends() {
    for (std::uint32_t t = 0; t < trace_.tensors.size(); ++t) {
      const Tensor& tensor = trace_.tensors[t];
      Lifetime& own = result_.tensors[t];
      own.alive_at_start = tensor.persistent || tensor.carried_from;
      if (tensor.persistent) own.heir = TensorId{t};
      if (tensor.carried_from) lifetime(*tensor.carried_from).heir = TensorId{t};
    }
    for (Lifetime& own : result_.tensors) own.alive_at_end = own.heir.has_value();
  }

  void set_birth_and_death(TensorId id) {
    Lifetime& own = lifetime(id);
    const bool itself = carried_from_itself(id);
    const std::optional<KernelId> freed = freed_at_[id.value];
    if (!own.alive_at_end || itself) {
      CHECK(freed || !own.uses.empty());
      own.death = freed ? *freed : own.uses.back();
      result_.deaths[own.death.value].push_back(id);
    }
    if (!own.alive_at_start || itself) {
      const auto first = itself ? std::ranges::upper_bound(own.uses, own.death) : own.uses.begin();
      CHECK(first != own.uses.end());
      own.birth = *first;
      result_.births[own.birth.value].push_back(id);
    }
  }

  void add_periods(TensorId id) {
    const Lifetime& own = lifetime(id);
    for (std::size_t i = 1; i < own.uses.size(); ++i) {
      const bool between_two_lives = carried_from_itself(id) && own.uses[i] == own.birth;
      if (between_two_lives)
        add_last(id, own.uses[i - 1]);
      else
        add({.tensor = id, .after = own.uses[i - 1], .before = own.uses[i], .wraps = false});
    }
    if (own.uses.empty()) return;
    if (!own.heir || (carried_from_itself(id) && own.uses.front() == own.birth)) add_last(id, own.uses.back());
    if (!own.heir) return;
    const Lifetime& heir = lifetime(*own.heir);
    const bool used_before_death =
        !heir.uses.empty() && !(carried_from_itself(*own.heir) && heir.uses[0] == heir.birth);
    if (used_before_death) add({.tensor = id, .after = own.uses.back(), .before = heir.uses[0], .wraps = true});
  }

  // Until it is freed, which may be in the next iteration.
  void add_last(TensorId id, KernelId after) {
    const auto before = static_cast<std::uint32_t>((lifetime(id).death.value + 1) % trace_.kernels.size());
    add({.tensor = id, .after = after, .before = {before}, .wraps = before <= after.value, .last = true});
  }

  void add(const InactivePeriod& period) {
    if (kernels_between(period, trace_.kernels.size()) > 0) result_.periods.push_back(period);
  }

  void add_live_bytes() {
    Bytes live;
    for (std::uint32_t t = 0; t < trace_.tensors.size(); ++t)
      if (result_.tensors[t].alive_at_start) live += trace_.tensors[t].bytes;
    for (std::size_t k = 0; k < trace_.kernels.size(); ++k) {
      for (const TensorId born : result_.births[k]) live += trace_[born].bytes;
      result_.live.push_back(live);
      for (const TensorId dead : result_.deaths[k]) live -= trace_[dead].bytes;
    }
  }

  const Trace& trace_;
  Lifetimes result_;
  std::vector<std::optional<KernelId>> freed_at_;  // by tensor
};

}  // namespace

Lifetimes analyse_lifetimes(const Trace& trace) { return Analysis(trace).run(); }

}  // namespace spillway
