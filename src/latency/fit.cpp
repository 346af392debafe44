#include "latency/fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/check.h"

namespace spillway {
namespace {

// Kernels that are the same to a network.
using Alike = std::map<Features, std::vector<const Kernel*>>;
using ByClass = std::map<std::string, Alike>;

// Of the different inputs in their order each fifth, from the third on: what lies between others.
constexpr std::size_t kHeldOutEach = 5, kHeldOutAt = 2;

ByClass by_class(std::span<const Trace* const> traces) {
  ByClass classes;
  for (const Trace* trace : traces)
    for (const Kernel& kernel : trace->kernels) {
      const Features features = features_of(kernel);
      for (const std::string_view name : {class_of(kernel.name), kAnyClass})
        classes[std::string(name)][features].push_back(&kernel);
    }
  return classes;
}

// The nearest to several in squares is their mean, so one example stands for them.
Example example_of(const Features& features, const std::vector<const Kernel*>& kernels) {
  double sum = 0;
  for (const Kernel* kernel : kernels) sum += output_of(*kernel);
  const auto count = static_cast<double>(kernels.size());
  return {.features = features, .output = static_cast<float>(sum / count), .weight = static_cast<float>(count)};
}

ClassLatency class_latency(const std::string& name, const Alike& alike) {
  ClassLatency result{.name = name, .kernels = 0, .network = {}};
  std::vector<Example> examples;
  for (const auto& [features, kernels] : alike) {
    examples.push_back(example_of(features, kernels));
    result.kernels += kernels.size();
  }
  result.network = train(examples);
  return result;
}

double miss(double predicted, const Kernel& kernel) {
  const auto time = static_cast<double>(std::max(kernel.duration, Nanos{1}).value);
  return std::abs(predicted - time) / time;
}

// Of kernels that were held out.
struct Misses {
  std::vector<double> network, mean;
  void add(const Misses& other) {
    network.insert(network.end(), other.network.begin(), other.network.end());
    mean.insert(mean.end(), other.mean.begin(), other.mean.end());
  }
};

Misses misses_of(const Alike& alike) {
  std::vector<Example> seen;
  std::vector<const Kernel*> held_out;
  double sum = 0, count = 0;
  std::size_t at = 0;
  for (const auto& [features, kernels] : alike) {
    if (at++ % kHeldOutEach == kHeldOutAt) {
      held_out.insert(held_out.end(), kernels.begin(), kernels.end());
      continue;
    }
    seen.push_back(example_of(features, kernels));
    for (const Kernel* kernel : kernels) sum += static_cast<double>(kernel->duration.value);
    count += static_cast<double>(kernels.size());
  }
  Misses misses;
  if (held_out.empty()) return misses;
  const Network network = train(seen);
  for (const Kernel* kernel : held_out) {
    misses.network.push_back(miss(static_cast<double>(time_of(network, *kernel).value), *kernel));
    misses.mean.push_back(miss(sum / count, *kernel));
  }
  return misses;
}

void set_errors(ClassFit& fit, const Misses& misses) {
  fit.held_out = misses.network.size();
  if (fit.held_out == 0) return;
  fit.network = errors_of(misses.network);
  fit.mean = errors_of(misses.mean);
}

}  // namespace

RelativeErrors errors_of(std::vector<double> parts) {
  CHECK(!parts.empty());
  std::ranges::sort(parts);
  const auto at = [&](std::size_t tenths) { return parts[(parts.size() - 1) * tenths / 10]; };
  return {.median = at(5), .most_of_nine_in_ten = at(9)};
}

std::size_t classes_of(std::span<const Trace* const> traces) { return by_class(traces).size(); }

LatencyModel fit_model(std::span<const Trace* const> traces) {
  LatencyModel model;
  for (const auto& [name, alike] : by_class(traces)) model.classes.push_back(class_latency(name, alike));
  CHECK(!model.classes.empty());
  return model;
}

Fit fit_latencies(std::span<const Trace* const> traces, const std::function<void(std::size_t done)>& progress) {
  Fit fit;
  Misses all;
  for (const auto& [name, alike] : by_class(traces)) {
    ClassFit& one = fit.classes.emplace_back();
    one.name = name;
    one.inputs = alike.size();
    fit.model.classes.push_back(class_latency(name, alike));
    one.kernels = fit.model.classes.back().kernels;
    const Misses misses = misses_of(alike);
    set_errors(one, misses);
    if (name == kAnyClass) {
      fit.all.kernels = one.kernels;
      fit.all.inputs = one.inputs;
    } else {
      all.add(misses);
    }
    progress(fit.classes.size());
  }
  CHECK(!fit.classes.empty());
  set_errors(fit.all, all);
  return fit;
}

}  // namespace spillway
