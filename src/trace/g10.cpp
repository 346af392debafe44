#include "trace/g10.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "trace/compressed.h"
#include "trace/validate.h"

namespace spillway {
namespace {

// 1.2 cycles are a nanosecond; to the nearest.
constexpr Nanos time_of_cycles(std::uint64_t cycles) { return {(cycles * 10 + 6) / 12}; }
static_assert(time_of_cycles(6) == Nanos{5} && time_of_cycles(1) == Nanos{1});
constexpr std::uint64_t kMostCycles = std::uint64_t{1} << 59;  // 15 years: so that times ten still fits

// Takes `prefix` off the front of `text`, if it is there.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take(std::string_view& text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// The artifact's names end in what the kernel is for: "Conv2d_Forward", "Linear_Backward_Weight", "Apply_Grad".
Phase phase_of(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("Apply_Grad")) return Phase::optimizer;
  if (has("_Backward") || has("MultiGredient") || name == "makeLoss") return Phase::backward;  // the loss's gradient
  if (has("_Forward") || has("LoadData")) return Phase::forward;
  return Phase::other;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& where) : rest_(text), where_(where) {}

  Result<Trace> run(const std::string& name) {
    trace_.name = name;
    trace_.source = "g10";
    while (!rest_.empty()) {
      ++line_number_;
      TRY_VOID(read(take_line(rest_)));
    }
    TRY_VOID(end_kernel());
    return finish();
  }

 private:
  enum class List : std::uint8_t { none, inputs, outputs, workspace };

  std::unexpected<Error> wrong(std::string_view what) const {
    return fail(Errc::bad_input, fmt::format("cannot import {}: line {}: {}", where_, line_number_, what));
  }

  Result<> read(std::string_view line) {
    if (line.starts_with("Kernel ID:")) return read_kernel(line);
    if (line.empty() || line.starts_with("---")) return {};
    if (line.starts_with("___")) return (has_ended_ = true, Result<>{});
    if (trace_.kernels.empty())
      return wrong("it does not begin with 'Kernel ID: 0'; name a kernels.config of the G10 artifact's statistics");
    if (line.starts_with("Execution Time:")) return read_time(line);
    if (line.starts_with("tensor")) return read_tensor(line);
    if (line.starts_with("Input Tensors")) return (list_ = List::inputs, Result<>{});
    if (line.starts_with("Output Tensors")) return (list_ = List::outputs, Result<>{});
    if (line.starts_with("Workspace")) return (list_ = List::workspace, Result<>{});
    if (line.starts_with("Parent") || line.starts_with('('))
      return {};  // the layer and its shape, which we do not need
    return wrong(fmt::format("'{}' is not a line of a kernels.config; make the file again", line.substr(0, 60)));
  }

  Result<> read_kernel(std::string_view line) {
    TRY_VOID(end_kernel());
    std::uint64_t id = 0;
    if (!take(line, "Kernel ID: ") || !take(line, id) || !take(line, ", Name: ") || line.empty())
      return wrong("a kernel must read 'Kernel ID: NUMBER, Name: NAME'; make the file again");
    if (id != trace_.kernels.size())
      return wrong(fmt::format("kernel {} follows kernel {}; they must count from 0 in order, make the file again", id,
                               static_cast<std::int64_t>(trace_.kernels.size()) - 1));
    trace_.kernels.emplace_back().name = line;
    trace_.kernels.back().phase = phase_of(line);
    list_ = List::none;
    has_time_ = has_ended_ = false;
    return {};
  }

  Result<> end_kernel() const {
    if (trace_.kernels.empty() || (has_time_ && has_ended_)) return {};
    return wrong(fmt::format("kernel {} before it has no {}; the file is cut off or damaged, make it again",
                             trace_.kernels.size() - 1, has_time_ ? "line of '_' at its end" : "'Execution Time:'"));
  }

  Result<> read_time(std::string_view line) {
    std::uint64_t cycles = 0;
    if (!take(line, "Execution Time: ") || !take(line, cycles) || !line.empty() || cycles > kMostCycles)
      return wrong("'Execution Time:' must be followed by a whole number of cycles, at most 2^59; make the file again");
    trace_.kernels.back().duration = time_of_cycles(cycles);
    has_time_ = true;
    return {};
  }

  Result<> read_tensor(std::string_view line) {
    std::uint64_t number = 0, weight = 0, size = 0, begin = 0, end = 0;
    if (!take(line, "tensor") || !take(line, number) || !take(line, " Is weight (global)?: ") || !take(line, weight) ||
        !take(line, ", Size in byte: ") || !take(line, size) || weight > 1)
      return wrong(
          "a tensor must read 'tensorN Is weight (global)?: 0, Size in byte: BYTES, Range:FROM--TO'; "
          "make the file again");
    if (!line.empty() && (!take(line, ", Range:") || !take(line, begin) || !take(line, "--") || !take(line, end) ||
                          !line.empty() || end < begin || end - begin != size))
      return wrong(
          fmt::format("the range of tensor{} does not end its line, or is not as long as its size; make the file "
                      "again",
                      number));
    if (list_ == List::none) return wrong("a tensor stands before 'Input Tensors:'; make the file again");
    return use(number, Tensor{.name = fmt::format("tensor{}", number),
                              .bytes = {size},
                              .kind = TensorKind::other,
                              .persistent = weight == 1});
  }

  Result<> use(std::uint64_t number, Tensor tensor) {
    const auto [place, is_new] = ids_.try_emplace(number, TensorId{static_cast<std::uint32_t>(trace_.tensors.size())});
    const TensorId id = place->second;
    if (is_new) {
      tensor.kind = kind_at_first_use(tensor.persistent);
      trace_.tensors.push_back(std::move(tensor));
    } else if (trace_[id].bytes != tensor.bytes || trace_[id].persistent != tensor.persistent) {
      return wrong(
          fmt::format("tensor{} has another size, or is a weight here and not before; make the file again", number));
    }
    Kernel& kernel = trace_.kernels.back();
    std::vector<Access>& accesses = list_ == List::inputs ? kernel.reads : kernel.writes;
    last_use_.resize(trace_.tensors.size());
    std::size_t& last = last_use_[id.value][list_ == List::inputs ? 0 : 1];
    if (std::exchange(last, trace_.kernels.size()) != trace_.kernels.size())
      accesses.push_back({.tensor = id, .end = trace_[id].bytes});
    return {};
  }

  TensorKind kind_at_first_use(bool persistent) const {
    if (persistent) return TensorKind::weight;
    if (list_ == List::inputs) return TensorKind::input;  // born here, filled from outside, without a transfer
    if (list_ == List::workspace) return TensorKind::workspace;
    if (trace_.kernels.back().name.contains("LoadData")) return TensorKind::input;
    return kind_made_in(trace_.kernels.back().phase);
  }

  Result<Trace> finish() {
    number_tensors_as_the_artifact_does();
    std::vector<bool> used_later(trace_.tensors.size(), false);
    for (auto kernel = trace_.kernels.rbegin(); kernel != trace_.kernels.rend(); ++kernel) {
      for (const auto* accesses : {&kernel->reads, &kernel->writes})
        for (const Access& access : *accesses) {
          if (!used_later[access.tensor.value] && !trace_[access.tensor].persistent)
            kernel->frees.push_back(access.tensor);
          used_later[access.tensor.value] = true;
        }
      std::ranges::sort(kernel->frees);
    }
    TRY_VOID(validate(trace_, "cannot import " + where_));
    return std::move(trace_);
  }

  // Its numbers have no gaps in the published files, so that tensor17 has id 17 there.
  void number_tensors_as_the_artifact_does() {
    std::vector<Tensor> tensors;
    std::vector<TensorId> now(trace_.tensors.size());
    for (const auto& [number, before] : ids_) {
      now[before.value] = TensorId{static_cast<std::uint32_t>(tensors.size())};
      tensors.push_back(std::move(trace_.tensors[before.value]));
    }
    trace_.tensors = std::move(tensors);
    for (Kernel& kernel : trace_.kernels)
      for (auto* accesses : {&kernel.reads, &kernel.writes})
        for (Access& access : *accesses) access.tensor = now[access.tensor.value];
  }

  std::string_view rest_;
  const std::string& where_;
  std::size_t line_number_ = 0;
  Trace trace_;
  std::map<std::uint64_t, TensorId> ids_;  // by the artifact's number
  List list_ = List::none;
  // By tensor: how many kernels there were when it was last used as an input, and otherwise.
  std::vector<std::array<std::size_t, 2>> last_use_;
  bool has_time_ = false, has_ended_ = false;  // of the last kernel
};

namespace fs = std::filesystem;

// The file that a path means: itself, or that of a folder.
Result<std::string> g10_file(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  for (const char* name : {"kernels.config", "kernels.config.zst"})
    if (const fs::path file = fs::path(path) / name; fs::exists(file, ignored)) return file.string();
  return fail(Errc::io, fmt::format("cannot import {}: the folder holds neither kernels.config nor kernels.config.zst; "
                                    "name a statistics folder of the G10 artifact",
                                    path));
}

}  // namespace

Result<Trace> parse_g10(std::string_view text, const std::string& where, const std::string& name) {
  return Parser(text, where).run(name);
}

Result<Trace> import_g10(const std::string& path) {
  TRY(const std::string file, g10_file(path));
  TRY(const std::string text, read_maybe_compressed(file, kMostTraceBytes));
  // The artifact names an experiment by its folder.
  std::error_code ignored;
  const std::string folder = fs::absolute(file, ignored).parent_path().filename();
  return parse_g10(text, file, folder.empty() ? "g10" : folder);
}

}  // namespace spillway
