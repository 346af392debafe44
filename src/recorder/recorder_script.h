#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recorder/recorder.h"
#include "trace/validate.h"

namespace spillway {

// A script in miniature, which marks its optimizer steps: tensors by name, and a clock that each kernel moves on.
class Script {
 public:
  explicit Script(std::uint64_t iteration = 0, std::size_t most_kernels = 1000) : recorder(iteration, most_kernels) {
    recorder.forget_anchors();
  }

  struct Call {
    std::string_view name;
    Phase phase = Phase::forward;
    std::vector<std::string> reads{}, writes{};
    std::vector<std::string> makes{}, drops{};  // inside it
    bool updates = false;                       // by hand, without an optimizer
    std::uint64_t shapes = 1;
    std::uint64_t duration = 10;
    std::uint64_t bytes = 64;  // of what it makes
    std::string fills{};       // a part of it only
    std::uint64_t at = 0;      // which: 8 bytes from there on
    bool replayable = false;
    std::vector<std::string> statistics{};  // that it updates
  };
  void run(const Call& call) {
    KernelEvent event{.name = call.name,
                      .phase = call.phase,
                      .updates = call.updates || call.phase == Phase::optimizer,
                      .replayable = call.replayable,
                      .shapes = call.shapes};
    for (const auto& name : call.reads) touch(event, name, false);
    for (const auto& name : call.writes) touch(event, name, true);
    for (const auto& name : call.statistics) {
      touch(event, name, true);
      event.touches.back().statistic = true;
    }
    if (!call.fills.empty())
      event.touches.push_back({.storage = storages_.at(call.fills),
                               .begin = Bytes{call.at},
                               .end = Bytes{call.at + 8},
                               .reads = false,
                               .writes = true});
    for (const auto& name : call.makes)
      event.births.push_back({.storage = make(name), .bytes = Bytes{call.bytes}, .label = label_of(name)});
    for (const auto& name : call.drops) event.deaths.push_back(take(name));
    event.start = Nanos{clock_ += 5};
    event.end = Nanos{clock_ += call.duration + slower_};
    if (on_device) {
      event.on_device = static_cast<std::uint32_t>(newer_.size());
      newer_.push_back(*on_device);
    }
    recorder.kernel(event);
  }
  static TensorLabel label_of(const std::string& name) { return {std::hash<std::string>{}(name)}; }
  // Each kernel from now on, by so much.
  void slower(std::uint64_t nanos) { slower_ = nanos; }
  void data(const std::string& name) {
    recorder.born_outside({.storage = make(name), .bytes = Bytes{64}, .label = label_of(name)});
  }
  void elsewhere(const std::string& name) { recorder.born_elsewhere({.storage = make(name), .bytes = Bytes{64}}); }
  void drop(const std::string& name) { recorder.died_outside(take(name)); }
  void written_outside(const std::string& name) { recorder.written_outside(storages_.at(name)); }
  void rename(const std::string& from, const std::string& to) {
    const StorageId id = take(from);
    storages_[to] = id;
  }
  void drop_if_there(const std::string& name) {
    if (storages_.contains(name)) drop(name);
  }

  // One micro-batch of a layer with the weight `w`; the loss lives until the next one replaces it.
  void forward_backward(const std::string& w, bool first = true, std::uint64_t batch = 64) {
    run({.name = "randn", .makes = {"x"}, .bytes = batch});
    run({.name = "mm", .reads = {"x", w}, .makes = {"new_loss", "scratch"}, .drops = {"scratch"}, .bytes = batch});
    drop_if_there("loss");
    rename("new_loss", "loss");
    if (first)
      run({.name = "mm_backward", .phase = Phase::backward, .reads = {"x", w}, .makes = {"grad_" + w}});
    else
      run({.name = "mm_backward", .phase = Phase::backward, .reads = {"x", w}, .writes = {"grad_" + w}});
    drop("x");
  }
  void step(const std::string& w, bool lazy = false) {
    if (lazy && !storages_.contains("momentum_" + w))
      run({.name = "clone", .phase = Phase::optimizer, .reads = {"grad_" + w}, .makes = {"momentum_" + w}});
    run({.name = "sgd", .phase = Phase::optimizer, .reads = {"grad_" + w}, .writes = {w}});
    if (lazy) run({.name = "momentum", .phase = Phase::optimizer, .writes = {"momentum_" + w}});
    anchor();
  }
  void anchor() {
    if (on_device) recorder.took(std::exchange(older_, std::exchange(newer_, {})));
    recorder.anchor();
  }
  void zero_grad(const std::string& w) { drop_if_there("grad_" + w); }

  void evaluate(const std::string& w) {
    run({.name = "index", .makes = {"val"}});
    run({.name = "mm", .reads = {"val", w}, .makes = {"out"}});
    drop_if_there("old_out");
    rename("out", "old_out");  // Python keeps it until the next evaluation
    drop("val");
  }

  Trace trace() {
    const auto found = recorder.finish();
    EXPECT_TRUE(found) << (found ? "" : found.error().message);
    if (!found) return {};
    const auto valid = validate(*found, "trace");
    EXPECT_TRUE(valid) << (valid ? "" : valid.error().message);
    return *found;
  }

  Recorder recorder;
  std::optional<KernelTime> on_device;  // of each kernel, on a device that tells its times one anchor later

 private:
  StorageId make(const std::string& name) { return storages_[name] = {++last_}; }
  StorageId take(const std::string& name) {
    const StorageId id = storages_.at(name);
    storages_.erase(name);
    return id;
  }
  void touch(KernelEvent& event, const std::string& name, bool writes) {
    event.touches.push_back(
        {.storage = storages_.at(name), .begin = {}, .end = Bytes{64}, .reads = true, .writes = writes});
  }

  std::map<std::string, StorageId> storages_;
  std::vector<KernelTime> older_, newer_;
  std::uint64_t last_ = 0;
  std::uint64_t clock_ = 100, slower_ = 0;
};

inline std::vector<std::string> names(const Trace& trace) {
  std::vector<std::string> result;
  for (const Kernel& kernel : trace.kernels) result.push_back(kernel.name);
  return result;
}
using Names = std::vector<std::string>;

inline void train(Script& script, const std::string& w, std::uint64_t batch = 64) {
  script.zero_grad(w);
  script.forward_backward(w, true, batch);
  script.step(w);
}

inline const Tensor& written_by(const Trace& trace, std::size_t kernel, std::size_t place = 0) {
  return trace[trace.kernels[kernel].writes[place].tensor];
}

inline void train_steps(Script& script, int steps, std::uint64_t batch = 64) {
  for (int step = 0; step < steps; ++step) train(script, "w", batch);
}

}  // namespace spillway
