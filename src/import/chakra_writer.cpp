#include "import/chakra_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "import/allocations.h"
#include "import/execution_trace.h"

namespace spillway {
namespace {

constexpr std::uint64_t kRootNode = 1, kThreadNode = 2, kStepNode = 3;  // the ids of the nodes around all others
constexpr std::size_t kStepNumber = 1;  // by which the two files name the same; kernels have those that follow
constexpr std::string_view kStepName = R"("ProfilerStep#0")";
constexpr std::string_view kArguments = "Tensor[] self, Tensor[] weight, *, Tensor(a!)[] out";

Result<std::string> quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    return fail(Errc::bad_input, "cannot export the trace: a name is not UTF-8; rename it where it comes from");
  }
}

// A schema says the operator's name and then its arguments: nothing else may look like them.
std::string schema_of(std::string name) {
  std::ranges::replace_if(name, [](char c) { return c == '(' || c == '"' || c == '\\' || c < '!' || c > '~'; }, '_');
  return fmt::format("{}({}) -> Tensor[]", name, kArguments);
}

template <class Range, class Text>
std::string listed(const Range& range, Text text) {
  std::string list = "[";
  for (const auto& one : range) list += (list.size() > 1 ? "," : "") + text(one);
  return list + "]";
}

void add_line(std::string& lines, std::string_view line) {
  lines += lines.empty() ? "\n" : ",\n";
  lines += line;
}

// Some of an operator's tensors, and of each its sizes, as far as they are known.
struct Tensors {
  std::vector<TensorId> ids = {};
  std::vector<Sizes> sizes = {};

  void add(TensorId tensor, const Sizes& known = {}) {
    ids.push_back(tensor);
    sizes.push_back(known);
  }
};

// The execution trace: an operator is given three lists of tensors and returns what it makes.
class Nodes {
 public:
  explicit Nodes(const Trace& trace) : trace_(trace) {
    add(kRootNode, R"("[pytorch|profiler|execution_trace|process]")", kRootNode);
    add(kThreadNode, R"("[pytorch|profiler|execution_trace|thread]")", kRootNode);
    add(kStepNode, kStepName, kThreadNode, kStepNumber);
  }

  void add_operator(const Kernel& kernel, const std::string& name, std::size_t number,
                    const std::array<Tensors, 3>& given, const Tensors& made) {
    if (std::exchange(phase_, kernel.phase) != kernel.phase) begin_part();
    add(next_++, name, part_, number, schema_of(kernel.name),
        side(
            given, [&](const Tensors& one) { return values_of(one); },
            [](const Tensors& one) { return listed(one.sizes, sizes_text); },
            [](const Tensors& one) { return "\"GenericList" + listed(one.ids, [](TensorId) { return kType; }) + '"'; },
            [](const Tensors& one) { return listed(one.ids, [](TensorId) { return kNothing; }); }),
        side(
            made.ids, [&](TensorId id) { return value_of(id); }, [](TensorId) { return kNothing; },
            [](TensorId) { return '"' + kType + '"'; }, [](TensorId) { return kNothing; }));
  }

  std::string text() const { return std::string(kExecutionTraceBegin) + lines_ + "\n]}\n"; }

 private:
  // What its elements are, a trace does not say: they are bytes.
  inline static const std::string kType = "Tensor(unsigned char)", kNothing = "[]";

  std::string value_of(TensorId tensor) const {
    const std::uint64_t number = std::uint64_t{tensor.value} + 1;
    return fmt::format(R"([{},{},0,{},1,"cuda:0"])", number, number, trace_[tensor].bytes.value);
  }
  std::string values_of(const Tensors& tensors) const {
    return listed(tensors.ids, [&](TensorId id) { return value_of(id); });
  }
  static std::string sizes_text(const Sizes& sizes) {
    return listed(sizes, [](std::uint64_t size) { return std::to_string(size); });
  }

  template <class All, class Value, class Shape, class Type, class Stride>
  static std::string side(const All& all, Value value, Shape shape, Type type, Stride stride) {
    return fmt::format(R"({{"values":{},"shapes":{},"types":{},"strides":{}}})", listed(all, value), listed(all, shape),
                       listed(all, type), listed(all, stride));
  }

  // PyTorch tells the phases apart by what is around an operator.
  void begin_part() {
    part_ = kStepNode;
    if (phase_ != Phase::backward && phase_ != Phase::optimizer) return;
    part_ = next_++;
    add(part_,
        phase_ == Phase::backward ? R"("autograd::engine::evaluate_function: backward")" : R"("Optimizer.step#")",
        kStepNode);
  }

  void add(std::uint64_t id, std::string_view name, std::uint64_t parent, std::size_t function = 0,
           std::string_view schema = {}, std::string_view inputs = kNone, std::string_view outputs = kNone) {
    add_line(
        lines_,
        fmt::format(R"({{"id":{},"name":{},"ctrl_deps":{},"inputs":{},"outputs":{},"attrs":[)"
                    R"({{"name":"rf_id","type":"uint64","value":{}}},{{"name":"fw_parent","type":"uint64","value":0}},)"
                    R"({{"name":"seq_id","type":"int64","value":-1}},{{"name":"scope","type":"uint64","value":{}}},)"
                    R"({{"name":"tid","type":"uint64","value":1}},{{"name":"fw_tid","type":"uint64","value":0}},)"
                    R"({{"name":"op_schema","type":"string","value":"{}"}},)"
                    R"({{"name":"kernel_backend","type":"string","value":""}},)"
                    R"({{"name":"kernel_file","type":"string","value":""}}]}})",
                    id, name, parent, inputs, outputs, function, schema.empty() ? kUserScope : 0, schema));
  }

  static constexpr std::string_view kNone = R"({"values":[],"shapes":[],"types":[],"strides":[]})";
  static constexpr int kUserScope = 7;

  const Trace& trace_;
  std::string lines_;
  std::uint64_t next_ = kStepNode + 1, part_ = kStepNode;  // ids
  Phase phase_ = Phase::forward;
};

// The profile: the host calls a kernel every two microseconds, the GPU takes the trace's times.
class Events {
 public:
  void add_kernel(const Kernel& kernel, const std::string& name, std::size_t number) {
    called_ = 2000 * calls_++;
    add_line(lines_, fmt::format(R"({{"ph":"X","cat":"cpu_op","name":{},"pid":1,"tid":1,"ts":{},"dur":1,)"
                                 R"("args":{{"External id":{},"Record function id":{}}}}})",
                                 name, microseconds(called_), number, number));
    add_line(lines_, fmt::format(R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,)"
                                 R"("ts":{},"dur":1,"args":{{"External id":{},"correlation":{}}}}})",
                                 microseconds(called_), number, number));
    end_ += kernel.gap.value;
    add_line(lines_, fmt::format(R"({{"ph":"X","cat":"kernel","name":{},"pid":0,"tid":7,"ts":{},"dur":{},)"
                                 R"("args":{{"External id":{},"device":0,"stream":7,"correlation":{}}}}})",
                                 name, microseconds(end_), microseconds(kernel.duration.value), number, number));
    end_ += kernel.duration.value;
  }

  // While the last kernel so far is called, and after that.
  void add_birth(Bytes bytes, std::uint64_t address) { add_memory(called_, bytes, address, ""); }
  void add_death(Bytes bytes, std::uint64_t address) { add_memory(called_ + 1500, bytes, address, "-"); }

  std::string text(std::string_view estimated) const {
    const std::string step =
        fmt::format(R"({{"ph":"X","cat":"user_annotation","name":{},"pid":1,"tid":1,"ts":0.000,"dur":{},)"
                    R"("args":{{"External id":{},"Record function id":{}}}}})",
                    kStepName, microseconds(std::max(end_, 2000 * calls_)), kStepNumber, kStepNumber);
    return std::string(kProfileBegin) +
           (estimated.empty() ? std::string() : fmt::format(R"("estimated":{},)", estimated)) + R"("traceEvents":[)" +
           "\n" + step + "," + lines_ + "\n]}\n";
  }

 private:
  static std::string microseconds(std::uint64_t nanoseconds) {
    return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
  }

  void add_memory(std::uint64_t at, Bytes bytes, std::uint64_t address, std::string_view sign) {
    const std::uint64_t given = (bytes.value + kCudaMultiple - 1) / kCudaMultiple * kCudaMultiple;
    add_line(lines_,
             fmt::format(R"({{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":1,"ts":{},)"
                         R"("args":{{"Bytes":{}{},"Device Id":0,"Device Type":1,"Addr":{}}}}})",
                         microseconds(at), sign, given, address));
  }

  std::string lines_;
  std::uint64_t calls_ = 0;
  std::uint64_t called_ = 0, end_ = 0;  // nanoseconds: on the host, and on the GPU of the kernels so far
};

// Follows which tensors are alive: what a kernel writes and is not, it makes.
class Writer {
 public:
  explicit Writer(const Trace& trace)
      : trace_(trace), nodes_(trace), tensors_(trace.tensors.size()), seen_(trace.tensors.size(), 0) {}

  Result<ChakraFiles> write() {
    TRY_VOID(look_ahead());
    for (; kernel_ < trace_.kernels.size(); ++kernel_) TRY_VOID(add(trace_.kernels[kernel_]));
    std::string estimated;
    if (!trace_.estimated.empty()) {
      TRY(estimated, quoted(trace_.estimated));
    }
    return ChakraFiles{.execution_trace = nodes_.text(), .profile = events_.text(estimated)};
  }

 private:
  struct Life {
    bool alive = false;
    bool dies_with_last = true;  // use; else a kernel frees it, or none does
    std::size_t last = 0;        // the kernel that uses it last
    std::uint64_t address = 0;   // a number of its own, no place
  };

  Result<> look_ahead() {
    for (std::size_t k = 0; k < trace_.kernels.size(); ++k) {
      for (const auto* accesses : {&trace_.kernels[k].reads, &trace_.kernels[k].writes})
        for (const Access& access : *accesses) life(access.tensor).last = k;
      for (const TensorId freed : trace_.kernels[k].frees) life(freed).dies_with_last = false;
    }
    for (std::uint32_t t = 0; t < trace_.tensors.size(); ++t) {
      const Tensor& tensor = trace_.tensors[t];
      if (tensor.bytes.value > kMostEtBytes)
        return fail(Errc::bad_input, fmt::format("cannot export the trace: tensor {} has {} bytes, more than 2^50", t,
                                                 tensor.bytes.value));
      tensors_[t].alive = tensor.persistent || tensor.carried_from;
      if (tensor.persistent) tensors_[t].dies_with_last = false;
      if (tensor.carried_from) life(*tensor.carried_from).dies_with_last = false;
    }
    return {};
  }

  Result<> add(const Kernel& kernel) {
    TRY(const std::string name, quoted(kernel.name));
    std::vector<TensorId> reads = once(kernel.reads, 1), writes = once(kernel.writes, 2), used = reads;
    used.insert(used.end(), writes.begin(), writes.end());
    // What it makes itself it is not given.
    std::erase_if(reads, [&](TensorId id) { return !life(id).alive && trace_[id].kind != TensorKind::input; });
    std::array<Tensors, 3> given;
    auto& [plain, persistent, written] = given;
    // Readers take a tensor without sizes for one whose sizes are not known.
    const bool known = kernel.shapes.size() == reads.size() && std::ranges::none_of(kernel.shapes, &Sizes::empty);
    for (std::size_t r = 0; r < reads.size(); ++r) {
      life(reads[r]).alive = true;
      (trace_[reads[r]].persistent ? persistent : plain).add(reads[r], known ? kernel.shapes[r] : Sizes{});
    }
    Tensors made;
    for (const TensorId id : writes) (life(id).alive ? written : made).add(id);
    const std::size_t number = kStepNumber + 1 + kernel_;
    nodes_.add_operator(kernel, name, number, given, made);
    events_.add_kernel(kernel, name, number);
    for (const TensorId id : made.ids) {
      life(id).alive = true;
      life(id).address = next_address();
      events_.add_birth(trace_[id].bytes, life(id).address);
    }
    for (const TensorId id : used)
      if (life(id).dies_with_last && life(id).last == kernel_) free(id);
    for (const TensorId id : kernel.frees) free(id);
    return {};
  }

  // The tensors of these accesses, each once.
  std::vector<TensorId> once(std::span<const Access> accesses, std::size_t side) {
    std::vector<TensorId> ids;
    for (const Access& access : accesses)
      if (std::exchange(seen_[access.tensor.value], 2 * kernel_ + side) != 2 * kernel_ + side)
        ids.push_back(access.tensor);
    return ids;
  }

  void free(TensorId id) {
    if (!std::exchange(life(id).alive, false)) return;
    const std::uint64_t address = std::exchange(life(id).address, 0);
    events_.add_death(trace_[id].bytes, address != 0 ? address : next_address());
  }

  Life& life(TensorId id) { return tensors_[id.value]; }
  std::uint64_t next_address() { return addresses_ += kCudaMultiple; }

  const Trace& trace_;
  Nodes nodes_;
  Events events_;
  std::vector<Life> tensors_;
  std::vector<std::size_t> seen_;  // by tensor: in which kernel's reads or writes
  std::size_t kernel_ = 0;
  std::uint64_t addresses_ = 0;
};

}  // namespace

Result<ChakraFiles> to_chakra(const Trace& trace) { return Writer(trace).write(); }

}  // namespace spillway
