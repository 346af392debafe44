#include "plan/placement.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "memory/address_space.h"

namespace spillway {
namespace {

// A tensor may be away if nobody uses it for this part of the iteration, as the bytes tell that kernels use: measured
// times would put tensors elsewhere in each run, and a plan that one run has written could not be followed by another.
constexpr std::uint64_t kGoodWhile = 64;
constexpr Bytes kGranule{4096};
constexpr Bytes kUnbounded{std::uint64_t{1} << 56};

enum class Part : std::uint8_t { carried, long_lived, passing };

class Placer {
 public:
  Placer(const Trace& trace, const Lifetimes& lifetimes, Bytes least, Bytes block_bytes)
      : trace_(trace), lifetimes_(lifetimes), block_bytes_(block_bytes), parts_(trace.tensors.size()) {
    result_.places.resize(trace.tensors.size());
    choose_parts(least);
  }

  Placement place() {
    for (std::uint32_t t = 0; t < trace_.tensors.size(); ++t)
      if (parts_[t] == Part::carried) take({t});
    for (std::uint32_t k = 0; k < trace_.kernels.size(); ++k) {
      for (const TensorId born : lifetimes_.births[k])
        if (parts_[born.value] && parts_[born.value] != Part::carried) take(born);
      for (const TensorId dead : lifetimes_.deaths[k])
        if (parts_[dead.value] && parts_[dead.value] != Part::carried) give_back(dead);
    }
    join_parts();
    return std::move(result_);
  }

 private:
  struct Space {
    AddressSpace space{kUnbounded, kGranule};
    std::uint64_t end = 0;  // of what was ever taken
  };

  void choose_parts(Bytes least) {
    std::vector<std::uint64_t> starts{0};
    for (const Bytes bytes : lifetimes_.working_set) starts.push_back(starts.back() + bytes.value);
    std::vector<bool> idle(trace_.tensors.size(), false);
    for (const InactivePeriod& period : lifetimes_.periods)
      if (!period.wraps && !period.last)
        idle[period.tensor.value] =
            idle[period.tensor.value] ||
            (starts[period.before.value] - starts[period.after.value + 1]) * kGoodWhile >= starts.back();
    for (std::uint32_t t = 0; t < trace_.tensors.size(); ++t) {
      const Tensor& tensor = trace_.tensors[t];
      const Lifetime& life = lifetimes_.tensors[t];
      const bool alone = tensor.carried_from == TensorId{t};
      if (tensor.persistent || tensor.bytes < least || (!alone && (life.alive_at_start || life.alive_at_end))) continue;
      parts_[t] = alone ? Part::carried : idle[t] ? Part::long_lived : Part::passing;
    }
  }

  Space& space_of(TensorId tensor) { return spaces_[static_cast<std::size_t>(*parts_[tensor.value])]; }

  void take(TensorId tensor) {
    CHECK(!result_.places[tensor.value].has_value());
    Space& space = space_of(tensor);
    const auto offset = space.space.take(trace_[tensor].bytes);
    CHECK(offset.has_value());
    result_.places[tensor.value] = *offset;
    space.end = std::max(space.end, *offset + trace_[tensor].bytes.value);
  }
  void give_back(TensorId tensor) {
    CHECK(result_.places[tensor.value].has_value());
    space_of(tensor).space.give_back(*result_.places[tensor.value], trace_[tensor].bytes);
  }

  void join_parts() {
    std::array<std::uint64_t, 3> begins{};
    std::uint64_t end = 0;
    for (std::size_t part = 0; part < spaces_.size(); ++part) {
      begins[part] = end;
      end += (spaces_[part].end + block_bytes_.value - 1) / block_bytes_.value * block_bytes_.value;
    }
    result_.bytes = {end};
    for (std::uint32_t t = 0; t < trace_.tensors.size(); ++t)
      if (parts_[t]) {
        CHECK(result_.places[t].has_value());
        *result_.places[t] += begins[static_cast<std::size_t>(*parts_[t])];
        CHECK(*result_.places[t] + trace_.tensors[t].bytes.value <= end);
      }
  }

  const Trace& trace_;
  const Lifetimes& lifetimes_;
  Bytes block_bytes_;
  std::vector<std::optional<Part>> parts_;  // by tensor; nothing for what is not placed
  std::array<Space, 3> spaces_;
  Placement result_;
};

}  // namespace

Placement place_births(const Trace& trace, const Lifetimes& lifetimes, Bytes least, Bytes block_bytes) {
  CHECK(lifetimes.tensors.size() == trace.tensors.size() && lifetimes.births.size() == trace.kernels.size());
  return Placer(trace, lifetimes, least, block_bytes).place();
}

}  // namespace spillway
