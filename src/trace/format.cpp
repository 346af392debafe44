#include "trace/format.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ranges>
#include <span>

#include "base/text.h"
#include "trace/compressed.h"
#include "trace/parse.h"
#include "trace/text_of.h"

namespace spillway {
namespace {

Result<std::string> quoted(const std::string& text, const std::string& whose) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    return fail(
        Errc::bad_input,
        fmt::format("cannot write the trace: the name of {} is not UTF-8; rename it where it comes from", whose));
  }
}

void append_accesses(std::string& out, const Trace& trace, std::span<const Access> accesses) {
  const char* comma = "";
  for (const Access& access : accesses) {
    const bool whole = access.begin == Bytes{} && access.end == trace[access.tensor].bytes;
    if (whole && !access.sparse)
      fmt::format_to(std::back_inserter(out), "{}{}", comma, access.tensor.value);
    else
      fmt::format_to(std::back_inserter(out), R"({}{{"tensor":{},"begin":{},"end":{}{}}})", comma, access.tensor.value,
                     access.begin.value, access.end.value, access.sparse ? R"(,"sparse":true)" : "");
    comma = ",";
  }
}

template <class Numbers>
void append_list(std::string& out, const Numbers& numbers) {
  const char* comma = "";
  for (const auto number : numbers) {
    fmt::format_to(std::back_inserter(out), "{}{}", comma, number);
    comma = ",";
  }
}

void append_shapes(std::string& out, std::span<const Sizes> shapes) {
  out += R"(,"shapes":)";
  char before = '[';
  for (const Sizes& sizes : shapes) {
    out += before;
    out += '[';
    append_list(out, sizes);
    out += ']';
    before = ',';
  }
  out += ']';
}

// The oldest version that has all keys: who has an older program can read the file, and its hash stays.
int version_of(const Trace& trace) {
  if (!trace.estimated.empty()) return 3;
  return std::ranges::any_of(trace.kernels,
                             [](const Kernel& kernel) { return kernel.replay || !kernel.shapes.empty(); })
             ? 2
             : 1;
}

Result<> append_tensor(std::string& out, const Trace& trace, TensorId id) {
  const Tensor& tensor = trace[id];
  TRY(const std::string name, quoted(tensor.name, fmt::format("tensor {}", id.value)));
  fmt::format_to(std::back_inserter(out), R"({{"id":{},"name":{},"bytes":{},"kind":"{}","persistent":{})", id.value,
                 name, tensor.bytes.value, to_text(tensor.kind), tensor.persistent);
  if (tensor.carried_from) fmt::format_to(std::back_inserter(out), R"(,"carried_from":{})", tensor.carried_from->value);
  out += '}';
  return {};
}

Result<> append_kernel(std::string& out, const Trace& trace, const Kernel& kernel) {
  TRY(const std::string name, quoted(kernel.name, fmt::format("kernel {}", &kernel - trace.kernels.data())));
  fmt::format_to(std::back_inserter(out), R"({{"name":{},"phase":"{}","duration_ns":{},"gap_ns":{},"reads":[)", name,
                 to_text(kernel.phase), kernel.duration.value, kernel.gap.value);
  append_accesses(out, trace, kernel.reads);
  out += R"(],"writes":[)";
  append_accesses(out, trace, kernel.writes);
  out += R"(],"frees":[)";
  append_list(out, kernel.frees | std::views::transform(&TensorId::value));
  out += ']';
  if (kernel.flops) fmt::format_to(std::back_inserter(out), R"(,"flops":{})", *kernel.flops);
  if (kernel.replay) {
    out += R"(,"replay":{"omits":[)";
    append_list(out, kernel.replay->omits | std::views::transform(&TensorId::value));
    out += "]}";
  }
  if (!kernel.shapes.empty()) append_shapes(out, kernel.shapes);
  out += '}';
  return {};
}

}  // namespace

std::string trace_hash(std::string_view content) {
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Result<LoadedTrace> load_trace(const std::string& path) {
  TRY(const std::string content, read_maybe_compressed(path, kMostTraceBytes));
  return parse_trace(content, path);
}

Result<LoadedTrace> parse_trace(std::string_view json, const std::string& where) {
  TRY(Trace trace, read_trace_json(json, where));
  TRY_VOID(validate(trace, "cannot use trace " + where));
  return LoadedTrace{std::move(trace), trace_hash(json)};
}

Result<std::string> to_json(const Trace& trace) {
  TRY(const std::string name, quoted(trace.name, "the trace"));
  TRY(const std::string source, quoted(trace.source, "its source"));
  std::string out = fmt::format(R"({{"format":"{}","version":{},"name":{},"source":{},)", kTraceFormat,
                                version_of(trace), name, source);
  if (!trace.estimated.empty()) {
    TRY(const std::string estimated, quoted(trace.estimated, "the way in which its times were estimated"));
    out += fmt::format(R"("estimated":{},)", estimated);
  }
  out += "\n\"tensors\":[";
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t) {
    out += t == 0 ? "\n" : ",\n";
    TRY_VOID(append_tensor(out, trace, TensorId{t}));
  }
  out += "\n],\n\"kernels\":[";
  for (const Kernel& kernel : trace.kernels) {
    out += &kernel == trace.kernels.data() ? "\n" : ",\n";
    TRY_VOID(append_kernel(out, trace, kernel));
  }
  out += "\n]}\n";
  return out;
}

Result<> save_trace(const std::string& path, const Trace& trace) {
  TRY_VOID(validate(trace, "cannot write trace " + path));
  TRY(const std::string content, to_json(trace));
  if (content.size() > kMostTraceBytes.value)
    return fail(Errc::bad_input, fmt::format("cannot write trace {}: it would be {}, and longer traces than {} are "
                                             "not read",
                                             path, to_text(Bytes{content.size()}), to_text(kMostTraceBytes)));
  return write_maybe_compressed(path, content);
}

}  // namespace spillway
