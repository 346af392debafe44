#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace spillway {

// What a tensor is for. Policies may treat kinds differently; correctness never depends on them.
enum class TensorKind : std::uint8_t { weight, gradient, optimizer_state, activation, input, workspace, other };

enum class Phase : std::uint8_t { forward, backward, optimizer, other };

// What is made in that phase usually is, where nobody says more.
constexpr TensorKind kind_made_in(Phase phase) {
  return phase == Phase::forward    ? TensorKind::activation
         : phase == Phase::backward ? TensorKind::gradient
                                    : TensorKind::other;
}

// One allocation that kernels read or write. Its id is its place in Trace::tensors.
struct Tensor {
  std::string name;
  Bytes bytes;
  TensorKind kind = TensorKind::other;
  bool persistent = false;  // it outlives an iteration: weights, optimizer state
  // Set for a tensor that is not persistent and alive when the iteration starts: its bytes are those that this tensor
  // (often itself) held at the end of the iteration before. Example: gradients that the next iteration's zero_grad
  // frees.
  std::optional<TensorId> carried_from = {};

  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// The bytes [begin, end) of a tensor that a kernel reads or writes.
struct Access {
  TensorId tensor;
  Bytes begin = {};
  Bytes end;
  bool sparse = false;  // it touches rows within these bytes that nobody knows beforehand (an embedding)

  friend bool operator==(const Access&, const Access&) = default;
};

// A kernel that can run once more with the same result: it draws no random numbers, and what it makes covers its
// tensors. Those in `omits` it need neither read nor write then: running statistics.
struct Replayable {
  std::vector<TensorId> omits = {};

  bool leaves_out(TensorId tensor) const { return std::ranges::find(omits, tensor) != omits.end(); }

  friend bool operator==(const Replayable&, const Replayable&) = default;
};

using Sizes = std::vector<std::uint64_t>;  // of a tensor's dimensions, in elements

// One operator execution on the device. Its id is its place in Trace::kernels.
struct Kernel {
  std::string name;
  Phase phase = Phase::other;
  Nanos duration;
  Nanos gap = {};  // host time between the end of the kernel before and this one's start
  std::vector<Access> reads = {};
  std::vector<Access> writes = {};
  std::vector<TensorId> frees = {};       // tensors that die when this kernel has ended
  std::optional<double> flops = {};       // floating-point operations, where known
  std::optional<Replayable> replay = {};  // if it can be replayed, as far as is known
  std::vector<Sizes> shapes = {};         // of the tensors that the operator is given; empty if not known

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

// One training iteration in execution order. A value; valid if it came out of a reader or passed validate().
struct Trace {
  std::string name;
  std::string source;  // where it came from: "g10", "pytorch 2.13.0", ...
  // How the kernels' times were estimated: "roofline, a100". Empty: they were measured.
  std::string estimated = {};
  std::vector<Tensor> tensors = {};
  std::vector<Kernel> kernels = {};

  const Tensor& operator[](TensorId id) const { return tensors[id.value]; }
  const Kernel& operator[](KernelId id) const { return kernels[id.value]; }
  friend bool operator==(const Trace&, const Trace&) = default;
};

}  // namespace spillway
