#include "trace/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "trace/text_of.h"

namespace spillway {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 63;
constexpr std::size_t kMostKernels = std::size_t{1} << 31;

std::string name_of(const Trace& trace, TensorId id) {
  return fmt::format("tensor {}{}", id.value, in_brackets(trace[id].name));
}

// Walks the kernels once and follows each tensor from its birth to its death.
class Walk {
 public:
  Walk(const Trace& trace, const std::string& where)
      : trace_(trace),
        where_(where),
        states_(trace.tensors.size(), State::unborn),
        source_(trace.tensors.size(), false),
        used_(trace.tensors.size(), false),
        written_by_(trace.tensors.size(), 0),
        freed_(trace.tensors.size(), false) {}

  Result<> run() {
    TRY_VOID(check_tensors());
    TRY_VOID(check_carries());
    TRY_VOID(check_times());
    for (std::uint32_t k = 0; k < trace_.kernels.size(); ++k) TRY_VOID(check_kernel(KernelId{k}));
    return check_end();
  }

 private:
  enum class State : std::uint8_t { unborn, alive, dead };

  std::unexpected<Error> wrong(const std::string& what) const {
    return fail(Errc::bad_input, fmt::format("{}: {}", where_, what));
  }
  std::unexpected<Error> wrong(KernelId id, const std::string& what) const {
    return wrong(fmt::format("kernel {}{} {}", id.value, in_brackets(trace_[id].name), what));
  }
  std::unexpected<Error> wrong(TensorId id, const std::string& what) const {
    return wrong(fmt::format("{} {}", name_of(trace_, id), what));
  }
  bool carried_from_itself(TensorId id) const { return trace_[id].carried_from == id; }

  Result<> check_tensors() {
    if (trace_.tensors.size() > std::numeric_limits<std::uint32_t>::max())
      return wrong("it has more than 2^32 - 1 tensors, the most that ids can tell apart");
    std::uint64_t total = 0;
    for (std::uint32_t t = 0; t < trace_.tensors.size(); ++t) {
      const Tensor& tensor = trace_.tensors[t];
      if (tensor.bytes.value == 0) return wrong(TensorId{t}, "has 0 bytes; leave out tensors that hold nothing");
      if (tensor.bytes.value > kMost)
        return wrong(TensorId{t}, fmt::format("has {} bytes, more than 2^63; write its true size", tensor.bytes.value));
      if (tensor.bytes.value > kMost - total)
        return wrong(TensorId{t}, "and those before it sum to more than 2^63 bytes; write their true sizes");
      total += tensor.bytes.value;
      if (tensor.persistent || tensor.carried_from) states_[t] = State::alive;
    }
    return {};
  }

  Result<> check_carries() {
    for (std::uint32_t t = 0; t < trace_.tensors.size(); ++t) {
      const Tensor& tensor = trace_.tensors[t];
      if (!tensor.carried_from) continue;
      const TensorId from = *tensor.carried_from;
      if (from.value >= trace_.tensors.size())
        return wrong(TensorId{t}, fmt::format("is carried from tensor {}, which does not exist; the last is {}",
                                              from.value, trace_.tensors.size() - 1));
      if (tensor.persistent)
        return wrong(TensorId{t},
                     "is persistent and has carried_from; persistent tensors need none, drop one of the two");
      if (trace_[from].persistent)
        return wrong(TensorId{t},
                     fmt::format("is carried from {}, which is persistent; drop carried_from and use that one",
                                 name_of(trace_, from)));
      if (trace_[from].bytes != tensor.bytes)
        return wrong(TensorId{t}, fmt::format("has {} bytes but is carried from {}, which has {}; they must be equal",
                                              tensor.bytes.value, name_of(trace_, from), trace_[from].bytes.value));
      if (source_[from.value])
        return wrong(TensorId{t},
                     fmt::format("is carried from {}, as another tensor is; one allocation becomes one tensor",
                                 name_of(trace_, from)));
      source_[from.value] = true;
    }
    return {};
  }

  Result<> check_times() const {
    if (trace_.kernels.empty()) return wrong("it has no kernels; a trace needs at least one");
    if (trace_.kernels.size() > kMostKernels) return wrong("it has more than 2^31 kernels; record one iteration");
    std::uint64_t total = 0;
    for (std::uint32_t k = 0; k < trace_.kernels.size(); ++k) {
      const Kernel& kernel = trace_.kernels[k];
      for (const Nanos time : {kernel.duration, kernel.gap}) {
        if (time.value > kMostIterationTime.value - total)
          return wrong(KernelId{k},
                       "and those before it last more than 2^57 ns, 4.5 years; write their true durations");
        total += time.value;
      }
      if (kernel.flops && !(std::isfinite(*kernel.flops) && *kernel.flops >= 0))
        return wrong(KernelId{k}, "has flops that are not a finite number of at least 0; leave them out if unknown");
    }
    if (total == 0) return wrong("all its kernels last 0 ns; write their durations");
    return {};
  }

  Result<> check_kernel(KernelId id) {
    const Kernel& kernel = trace_[id];
    for (const Access& access : kernel.reads) TRY_VOID(check_range(id, "reads", access));
    for (const Access& access : kernel.writes) {
      TRY_VOID(check_range(id, "writes", access));
      written_by_[access.tensor.value] = id.value + 1;
    }
    for (const Access& access : kernel.reads) TRY_VOID(check_read(id, access.tensor));
    for (const Access& access : kernel.writes) {
      TRY_VOID(check_alive_or_unborn(id, "writes", access.tensor));
      begin_life(access.tensor);
    }
    for (const TensorId freed : kernel.frees) TRY_VOID(check_free(id, freed));
    if (kernel.replay) TRY_VOID(check_replay(id));
    return check_shapes(id);
  }

  // What is written in part keeps the rest, which a replay would not find in the new tensor.
  Result<> check_replay(KernelId id) {
    const Kernel& kernel = trace_[id];
    std::vector<TensorId> omits = kernel.replay->omits;
    std::ranges::sort(omits);
    for (auto omitted = omits.begin(); omitted != omits.end(); ++omitted) {
      TRY_VOID(check_known(id, "omits", *omitted));
      if (written_by_[omitted->value] != id.value + 1)
        return wrong(id, fmt::format("omits {} when it is replayed, but does not write it; drop it from omits",
                                     name_of(trace_, *omitted)));
      if (omitted != omits.begin() && *std::prev(omitted) == *omitted)
        return wrong(id, fmt::format("omits {} twice; name it once", name_of(trace_, *omitted)));
    }
    std::vector<Access> writes;
    std::ranges::copy_if(kernel.writes, std::back_inserter(writes),
                         [&](const Access& write) { return !std::ranges::binary_search(omits, write.tensor); });
    std::ranges::sort(writes, {}, [](const Access& write) { return std::pair(write.tensor, write.begin); });
    for (auto write = writes.begin(); write != writes.end();) {
      const TensorId tensor = write->tensor;
      Bytes covered;
      for (; write != writes.end() && write->tensor == tensor; ++write)
        if (write->begin <= covered && !write->sparse) covered = std::max(covered, write->end);
      if (covered < trace_[tensor].bytes)
        return wrong(id, fmt::format("has a replay but writes {} in part; drop its replay, or name the tensor in omits",
                                     name_of(trace_, tensor)));
    }
    return {};
  }

  Result<> check_shapes(KernelId id) const {
    for (const Sizes& sizes : trace_[id].shapes) {
      std::uint64_t elements = 1;
      for (const std::uint64_t size : sizes) {
        if (size > kMost / elements) return wrong(id, "has a shape of more than 2^63 elements; write its true sizes");
        elements *= std::max<std::uint64_t>(size, 1);  // those beside a 0 must fit as well
      }
    }
    return {};
  }

  Result<> check_known(KernelId id, std::string_view verb, TensorId tensor) const {
    if (tensor.value < trace_.tensors.size()) return {};
    return wrong(
        id, fmt::format("{} tensor {}, which does not exist; there are {}", verb, tensor.value, trace_.tensors.size()));
  }

  Result<> check_range(KernelId id, std::string_view verb, const Access& access) const {
    TRY_VOID(check_known(id, verb, access.tensor));
    const Bytes size = trace_[access.tensor].bytes;
    if (access.begin < access.end && access.end <= size) return {};
    return wrong(id,
                 fmt::format("{} bytes {} to {} of {}, which has {}; begin must be below end, and end at most its size",
                             verb, access.begin.value, access.end.value, name_of(trace_, access.tensor), size.value));
  }

  Result<> check_alive_or_unborn(KernelId id, std::string_view verb, TensorId tensor) const {
    if (states_[tensor.value] != State::dead) return {};
    return wrong(id,
                 fmt::format("{} {}, which an earlier kernel frees; free it later, or give the new allocation an id of "
                             "its own",
                             verb, name_of(trace_, tensor)));
  }

  Result<> check_read(KernelId id, TensorId tensor) {
    TRY_VOID(check_alive_or_unborn(id, "reads", tensor));
    if (states_[tensor.value] == State::unborn && !may_be_read_first(id, tensor))
      return wrong(
          id, fmt::format("reads {}, which no earlier kernel writes; let a kernel write it first, or give it the kind "
                          "input, or mark it persistent or carried_from",
                          name_of(trace_, tensor)));
    begin_life(tensor);
    return {};
  }

  // An input's bytes come from outside; a workspace may be written and read by the same kernel.
  bool may_be_read_first(KernelId id, TensorId tensor) const {
    if (trace_[tensor].kind == TensorKind::input) return true;
    return trace_[tensor].kind == TensorKind::workspace && written_by_[tensor.value] == id.value + 1;
  }

  void begin_life(TensorId tensor) {
    states_[tensor.value] = State::alive;
    used_[tensor.value] = true;
  }

  Result<> check_free(KernelId id, TensorId tensor) {
    TRY_VOID(check_known(id, "frees", tensor));
    if (trace_[tensor].persistent)
      return wrong(id,
                   fmt::format("frees {}, which is persistent; drop the free, or persistent", name_of(trace_, tensor)));
    if (states_[tensor.value] != State::alive)
      return wrong(id,
                   fmt::format("frees {}, which is {}; free a tensor once, after its last use", name_of(trace_, tensor),
                               states_[tensor.value] == State::dead ? "already freed" : "not alive yet"));
    // Its second life is the next iteration's first.
    const bool second_life = carried_from_itself(tensor) && !freed_[tensor.value];
    states_[tensor.value] = second_life ? State::unborn : State::dead;
    freed_[tensor.value] = true;
    return {};
  }

  Result<> check_end() const {
    for (std::uint32_t t = 0; t < trace_.tensors.size(); ++t) {
      const TensorId id{t};
      const Tensor& tensor = trace_[id];
      if (source_[t] && states_[t] != State::alive)
        return wrong(id,
                     "is carried into the next iteration but not alive at the end of this one; drop its last free or "
                     "the carried_from that names it");
      if (carried_from_itself(id) && !freed_[t])
        return wrong(id, "is carried from itself and never freed; mark it persistent instead");
      const bool must_be_used = !tensor.persistent && states_[t] != State::dead;
      if (must_be_used && !used_[t])
        return wrong(id, "is never used; leave it out, mark it persistent, or free it where it dies");
    }
    return {};
  }

  const Trace& trace_;
  const std::string& where_;
  std::vector<State> states_;
  std::vector<bool> source_;  // carried into the next iteration
  std::vector<bool> used_;
  std::vector<std::uint32_t> written_by_;  // one more than the last kernel, so far, that writes it
  std::vector<bool> freed_;
};

}  // namespace

Result<> validate(const Trace& trace, const std::string& where) { return Walk(trace, where).run(); }

}  // namespace spillway
