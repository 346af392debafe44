#include "trace/random_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace spillway {
namespace {

class Maker {
 public:
  Maker(std::uint64_t seed, const RandomTraceOptions& options) : random_(seed), options_(options) {}

  Trace make() {
    const std::uint64_t number = random_() % 1000;
    trace_.name = fmt::format("random-{}", number);
    trace_.source = "random";
    if (number % 4 == 0) trace_.estimated = fmt::format("by \"die\", {}", number);
    const auto layers = static_cast<std::uint32_t>(1 + below(options_.layers_most));
    TensorId input = add_tensor("input", TensorKind::input, false);
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      weights_.push_back(add_tensor("weight", TensorKind::weight, true));
      activations_.push_back(add_tensor("activation", TensorKind::activation, false));
      gradients_.push_back(add_tensor("gradient", TensorKind::gradient, false));
    }
    if (options_.carries) carry_some_gradients();
    for (std::uint32_t layer = 0; layer < layers; ++layer)
      add_forward(layer, layer == 0 ? input : activations_[layer - 1]);
    for (std::uint32_t layer = layers; layer-- > 0;) add_backward(layer);
    for (std::uint32_t layer = 0; layer < layers; ++layer) add_optimizer(layer);
    if (options_.carries && chance(3)) add_swapped_pair();
    // All of a few kernels may happen to take no time, and a trace of no time is none.
    if (std::ranges::all_of(trace_.kernels, [](const Kernel& one) { return one.duration + one.gap == Nanos{}; }))
      trace_.kernels.front().duration = Nanos{1};
    for (const auto& [tensor, first, last] : frees_)
      trace_.kernels[chance(3) ? first + below(last - first + 1) : first].frees.push_back(tensor);
    for (Kernel& kernel : trace_.kernels) {
      if (options_.replays && !chance(4)) kernel.replay = Replayable{omitted(kernel)};
      if (chance(3)) kernel.shapes = random_shapes();
    }
    return std::move(trace_);
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool chance(std::uint64_t one_in) { return below(one_in) == 0; }

  TensorId add_tensor(std::string_view name, TensorKind kind, bool persistent) {
    const TensorId id{static_cast<std::uint32_t>(trace_.tensors.size())};
    const std::uint64_t bytes = 1 + (chance(4) ? below(5000) : below(options_.bytes_most));
    trace_.tensors.push_back(
        {.name = fmt::format("{}{}", name, id.value), .bytes = {bytes}, .kind = kind, .persistent = persistent});
    return id;
  }

  // What it does not write whole, and now and then more.
  std::vector<TensorId> omitted(const Kernel& kernel) {
    std::vector<TensorId> omits;
    for (const Access& write : kernel.writes) {
      const auto is_all = [&](const Access& other) {
        return other.tensor == write.tensor && other.begin == Bytes{} && other.end == trace_[write.tensor].bytes &&
               !other.sparse;
      };
      if (std::ranges::find(omits, write.tensor) != omits.end()) continue;
      if (std::ranges::none_of(kernel.writes, is_all) || chance(8)) omits.push_back(write.tensor);
    }
    return omits;
  }
  std::vector<Sizes> random_shapes() {
    std::vector<Sizes> shapes(below(4));
    for (Sizes& sizes : shapes)
      for (std::uint64_t dimensions = below(5); dimensions > 0; --dimensions) sizes.push_back(below(1000));
    return shapes;
  }

  // With the last kernel made by now, or up to so many later: Python may hold on to what nobody uses any more.
  void free(TensorId tensor, std::size_t later) {
    const std::size_t now = trace_.kernels.size() - 1;
    frees_.push_back({tensor, now, now + later});
  }

  // zero_grad at the start of the next iteration frees these.
  void carry_some_gradients() {
    for (const TensorId gradient : gradients_)
      if (chance(2)) trace_.tensors[gradient.value].carried_from = gradient;
  }
  bool is_carried(TensorId id) const { return trace_[id].carried_from.has_value(); }

  Kernel& add_kernel(std::string_view name, Phase phase) {
    Kernel& kernel = trace_.kernels.emplace_back();
    kernel.name = fmt::format("{}_{}", name, trace_.kernels.size() - 1);
    kernel.phase = phase;
    if (!chance(10)) kernel.duration = {1 + below(2'000'000)};  // Some launch nothing.
    if (chance(3)) kernel.gap = {below(50'000)};
    if (chance(2)) kernel.flops = static_cast<double>(below(1'000'000)) / 3;
    return kernel;
  }

  void access(std::vector<Access>& accesses, TensorId tensor) {
    const Bytes size = trace_[tensor].bytes;
    accesses.push_back({.tensor = tensor, .end = size});
    if (!options_.partial_accesses || !chance(4)) return;
    accesses.back() = {.tensor = tensor, .begin = {below(size.value)}, .end = size, .sparse = chance(3)};
    if (chance(2)) accesses.push_back({.tensor = tensor, .end = {1 + below(size.value)}});
  }

  void add_forward(std::uint32_t layer, TensorId in) {
    Kernel& kernel = add_kernel("Forward", Phase::forward);
    access(kernel.reads, weights_[layer]);
    access(kernel.reads, in);
    access(kernel.writes, activations_[layer]);
    if (is_carried(gradients_[layer])) {
      if (chance(2)) access(kernel.reads, gradients_[layer]);
      free(gradients_[layer], weights_.size() - 1 - layer);
    }
    if (chance(3)) {
      const TensorId scratch = add_tensor("scratch", TensorKind::workspace, false);
      access(kernel.reads, scratch);
      access(kernel.writes, scratch);
      kernel.frees.push_back(scratch);
    }
  }

  void add_backward(std::uint32_t layer) {
    Kernel& kernel = add_kernel("Backward", Phase::backward);
    access(kernel.reads, activations_[layer]);
    access(kernel.reads, weights_[layer]);
    access(kernel.writes, gradients_[layer]);
    if (chance(2)) free(activations_[layer], weights_.size() + layer);
  }

  void add_optimizer(std::uint32_t layer) {
    Kernel& kernel = add_kernel("Optimizer", Phase::optimizer);
    access(kernel.reads, gradients_[layer]);
    access(kernel.reads, weights_[layer]);
    access(kernel.writes, weights_[layer]);
    if (!is_carried(gradients_[layer]) && chance(2)) free(gradients_[layer], weights_.size() - 1 - layer);
  }

  // A state that is written anew each iteration while the old one is still read: born as one tensor, read as another.
  void add_swapped_pair() {
    const TensorId fresh = add_tensor("state_out", TensorKind::other, false);
    const TensorId old = add_tensor("state_in", TensorKind::other, false);
    trace_.tensors[old.value].bytes = trace_[fresh].bytes;
    trace_.tensors[old.value].carried_from = fresh;
    Kernel& kernel = add_kernel("State", Phase::other);
    access(kernel.reads, old);
    access(kernel.writes, fresh);
    if (chance(2)) kernel.frees.push_back(old);
  }

  std::mt19937_64 random_;
  const RandomTraceOptions& options_;
  Trace trace_;
  std::vector<TensorId> weights_, activations_, gradients_;
  struct Free {
    TensorId tensor;
    std::size_t first, last;  // kernels
  };
  std::vector<Free> frees_;
};

}  // namespace

Trace random_trace(std::uint64_t seed, const RandomTraceOptions& options) { return Maker(seed, options).make(); }

}  // namespace spillway
