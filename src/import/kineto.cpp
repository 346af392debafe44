#include "import/kineto.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "import/json_list.h"

namespace spillway {
namespace {

using Json = nlohmann::json;

constexpr double kMostMicroseconds = 4e15;  // sums of two, as nanoseconds, fit 64 bits
constexpr std::uint64_t kMostBase = 4'000'000'000'000'000'000;
constexpr std::string_view kExport = "export it again with prof.export_chrome_trace()";

std::int64_t nanoseconds(double microseconds) { return std::llround(microseconds * 1000); }

class KinetoReader {
 public:
  explicit KinetoReader(const std::string& where) : where_("cannot import " + where) {}

  Result<Kineto> read(std::string_view json) {
    TRY(const Json rest,
        read_json_list(json, "traceEvents", where_, kExport, [this](const Json& event) { return read_event(event); }));
    if (kineto_.operators.empty())
      return fail(Errc::bad_input, fmt::format("{}: it has no operators; profile with ProfilerActivity.CPU", where_));
    kineto_.estimated = text_of(rest, "estimated");
    if (const auto base = rest.find("baseTimeNanoseconds"); base != rest.end()) {
      if (!base->is_number_unsigned() || base->get<std::uint64_t>() > kMostBase)
        return fail(Errc::bad_input, fmt::format("{}: 'baseTimeNanoseconds' is no time; {}", where_, kExport));
      kineto_.base = base->get<std::int64_t>();
    }
    return std::move(kineto_);
  }

 private:
  std::unexpected<Error> wrong(std::string_view what) const {
    return fail(Errc::bad_input, fmt::format("{}: traceEvents[{}]: {}; {}", where_, at_ - 1, what, kExport));
  }

  Result<> read_event(const Json& event) {
    ++at_;
    const std::string kind = text_of(event, "ph"), category = text_of(event, "cat");
    if (kind == "i" && text_of(event, "name") == "[memory]") return read_memory(event);
    if (kind != "X") return {};
    if (category == "cpu_op" || category == "user_annotation") return read_operator(event);
    if (category == "cuda_runtime" || category == "cuda_driver" || category == "hip_runtime") return read_launch(event);
    if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") return read_kernel(event);
    return {};
  }

  static std::string text_of(const Json& event, const char* key) {
    const auto value = event.find(key);
    return value != event.end() && value->is_string() ? value->get<std::string>() : std::string();
  }

  // What an event's "args" say under that key, if it is a whole number.
  static std::optional<std::int64_t> number_of(const Json& event, const char* key) {
    const auto arguments = event.find("args");
    if (arguments == event.end() || !arguments->is_object()) return std::nullopt;
    const auto value = arguments->find(key);
    if (value == arguments->end() || !value->is_number_integer()) return std::nullopt;
    return value->get<std::int64_t>();
  }

  Result<std::int64_t> time_of(const Json& event, const char* key) const {
    const auto value = event.find(key);
    const double time = value != event.end() && value->is_number() ? value->get<double>() : HUGE_VAL;
    if (!(time >= 0 && time <= kMostMicroseconds))
      return wrong(fmt::format("'{}' is no time in microseconds from 0 to {}", key, kMostMicroseconds));
    return nanoseconds(time);
  }

  Result<KinetoSpan> span_of(const Json& event) const {
    TRY(const std::int64_t begin, time_of(event, "ts"));
    TRY(const std::int64_t duration, time_of(event, "dur"));
    return KinetoSpan{.begin = begin, .end = begin + duration};
  }

  static std::int64_t thread_of(const Json& event) {
    const auto thread = event.find("tid");
    return thread != event.end() && thread->is_number_integer() ? thread->get<std::int64_t>() : -1;
  }

  Result<> read_operator(const Json& event) {
    TRY(const KinetoSpan time, span_of(event));
    const auto id = number_of(event, "External id"), function = number_of(event, "Record function id");
    if (!id || *id < 0) return {};  // of the profiler itself
    kineto_.operators.push_back({.name = text_of(event, "name"),
                                 .id = static_cast<std::uint64_t>(*id),
                                 .thread = thread_of(event),
                                 .time = time});
    if (function && *function >= 0) kineto_.operators.back().function = static_cast<std::uint64_t>(*function);
    return {};
  }

  Result<> read_launch(const Json& event) {
    TRY(const std::int64_t at, time_of(event, "ts"));
    if (const auto correlation = number_of(event, "correlation"); correlation && *correlation >= 0)
      kineto_.launches.push_back(
          {.correlation = static_cast<std::uint64_t>(*correlation), .thread = thread_of(event), .at = at});
    return {};
  }

  Result<> read_kernel(const Json& event) {
    TRY(const KinetoSpan time, span_of(event));
    if (const auto correlation = number_of(event, "correlation"); correlation && *correlation >= 0)
      kineto_.kernels.push_back({.correlation = static_cast<std::uint64_t>(*correlation), .time = time});
    return {};
  }

  Result<> read_memory(const Json& event) {
    TRY(const std::int64_t at, time_of(event, "ts"));
    const auto address = number_of(event, "Addr"), bytes = number_of(event, "Bytes");
    if (!address || !bytes || *bytes == 0) return wrong("a [memory] event lacks 'Addr' or 'Bytes'");
    kineto_.memory.push_back({.address = static_cast<std::uint64_t>(*address),
                              .bytes = *bytes,
                              .at = at,
                              .host = number_of(event, "Device Type") == 0,
                              .device = number_of(event, "Device Id").value_or(0)});
    return {};
  }

  std::string where_;
  std::size_t at_ = 0;
  Kineto kineto_;
};

}  // namespace

Result<Kineto> parse_kineto(std::string_view json, const std::string& where) { return KinetoReader(where).read(json); }

}  // namespace spillway
