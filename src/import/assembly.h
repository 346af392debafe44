#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/trace.h"

namespace spillway {

// No file has more kernels, tensors or uses than this: what a small hostile file can make us hold is bounded.
inline constexpr std::size_t kMostImported = 20'000'000;

// Puts a trace together from what another tool's file says, use by use. What such files leave out is decided here, the
// same for all of them (docs/formats/import.md): kinds from who uses a tensor first, deaths from the last use where
// nothing else is said.
class Assembly {
 public:
  Assembly(std::string name, std::string source);

  // A tensor; `made`: the next kernel that is given it fills it, whatever the file calls that.
  TensorId add(std::string name, Bytes bytes, bool made = false);
  void rename(TensorId tensor, std::string name);
  // It is larger than was known.
  void grow(TensorId tensor, Bytes bytes);
  // It outlives the iteration.
  void keep(TensorId tensor, TensorKind kind = TensorKind::weight);

  // The kernel that the next uses belong to.
  void begin(std::string name, Phase phase, Nanos duration, Nanos gap);
  void read(TensorId tensor);
  void write(TensorId tensor);
  void shape(Sizes sizes);  // of the next tensor that the operator is given

  // Nobody holds it from here on: it dies with the last kernel so far.
  void release(TensorId tensor);
  // The same with that kernel, or with its last use if that is later.
  void release(TensorId tensor, std::size_t kernel);

  std::size_t kernels() const { return trace_.kernels.size(); }
  bool used(TensorId tensor) const { return uses_[tensor.value].first.has_value(); }
  bool written(TensorId tensor) const { return uses_[tensor.value].written; }
  bool read_first(TensorId tensor) const { return uses_[tensor.value].read_first; }
  Phase first_phase(TensorId tensor) const;  // of the kernel that uses it first; it is used
  // More than any honest file has: the reader then refuses it.
  bool too_large() const { return size_ > kMostImported; }

  // Leaves out tensors that no kernel uses. `where` begins the errors: "cannot import FILE".
  Result<Trace> finish(const std::string& where) &&;

 private:
  struct Uses {
    bool made = false, written = false, read_first = false;
    std::optional<std::size_t> first = {};
    std::size_t last = 0;
    std::optional<std::size_t> death = {};
    // One more than the kernel that last reads it, and that last writes it: each names it once.
    std::size_t reader = 0, writer = 0;
  };

  void use(TensorId tensor);

  Trace trace_;
  std::vector<Uses> uses_;
  std::size_t size_ = 0;
};

}  // namespace spillway
