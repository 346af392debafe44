#include "journal/run_names.h"

#include <algorithm>
#include <span>

#include "analysis/lifetimes.h"

namespace spillway {
namespace {

template <class T>
bool has(const std::vector<T>& values, const T& value) {
  return std::ranges::find(values, value) != values.end();
}
template <class T>
void add_once(std::vector<T>& values, const T& value) {
  if (!has(values, value)) values.push_back(value);
}

}  // namespace

RunNames::RunNames(const Trace* given) : trace_(given) {
  if (given == nullptr) return;
  const Trace& trace = *given;
  const Lifetimes lifetimes = analyse_lifetimes(trace);
  for (std::uint32_t k = 0; k < trace.kernels.size(); ++k) {
    Used& used = used_.emplace_back();
    std::vector<TensorId> written;
    for (const Access& access : trace.kernels[k].writes) add_once(written, access.tensor);
    for (const Access& access : trace.kernels[k].reads)
      if (!has(written, access.tensor)) add_once(used.read, access.tensor);
    for (const TensorId tensor : written)
      if (!has(lifetimes.births[k], tensor)) used.written.push_back(tensor);
  }
}

void RunNames::take(const Record& record) {
  if (const auto* named = std::get_if<Named>(&record)) names_.emplace(named->execution, named->name);
  const auto* told = std::get_if<Told>(&record);
  if (told == nullptr) return;
  if (const auto* adopted = std::get_if<Adopted>(&told->event)) plan_ = adopted->plan;
  if (const auto* ready = std::get_if<KernelReady>(&told->event)) take(*ready);
}

void RunNames::take(const KernelReady& ready) {
  if (trace_ == nullptr || plan_ == nullptr || ready.plan != plan_->id || plan_->kernels != used_.size()) return;
  if (ready.kernel.value >= used_.size() || ready.execution == ExecutionId{}) return;
  const auto [known, is_new] = kernels_.emplace(ready.execution, ready.kernel);
  if (!is_new) {
    is_another_ |= (*trace_)[known->second].name != (*trace_)[ready.kernel].name;
    if (known->second == ready.kernel) return;  // Its tensors are known, too.
  }
  std::vector<TensorLabel> read, written;
  for (const BlockAccess& access : ready.accesses)
    if (access.writes) add_once(written, access.tensor);
  for (const BlockAccess& access : ready.accesses)
    if (!has(written, access.tensor)) add_once(read, access.tensor);
  const Used& used = used_[ready.kernel.value];
  const auto name = [&](const std::vector<TensorLabel>& labels, const std::vector<TensorId>& tensors) {
    if (labels.size() != tensors.size()) return;  // One of them was not seen: nobody knows which.
    for (std::size_t at = 0; at < labels.size(); ++at)
      if (labels[at] != TensorLabel{}) tensors_.emplace(labels[at], tensors[at]);
  };
  name(read, used.read);
  name(written, used.written);
}

std::string_view RunNames::name(ExecutionId execution) const {
  const auto found = names_.find(execution);
  return found == names_.end() ? std::string_view{} : found->second;
}

const Kernel* RunNames::kernel(ExecutionId execution) const {
  const auto found = kernels_.find(execution);
  return is_another_ || found == kernels_.end() ? nullptr : &(*trace_)[found->second];
}

const Tensor* RunNames::tensor(TensorLabel label) const {
  const auto found = tensors_.find(label);
  return is_another_ || found == tensors_.end() ? nullptr : &(*trace_)[found->second];
}

}  // namespace spillway
