#include "plan/machine_fields.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/text.h"
#include "memory/pieces.h"

namespace spillway {
namespace {

using M = MachineModel;

// The limits are far beyond any hardware; within them no single move or fault overflows a clock of 64 bits.
constexpr std::uint64_t kMemory = std::uint64_t{1} << 50;
constexpr std::uint64_t kRate = 100'000'000'000'000;
constexpr std::uint64_t kLatency = 10'000'000'000;
constexpr std::uint64_t kMostGflops = 1'000'000'000;
constexpr std::uint64_t kLeastRate = kSlowest.value;

FlashModel& flash(M& m) { return m.flash ? *m.flash : m.flash.emplace(); }

constexpr auto kFields = std::to_array<MachineField>({
    {"device.memory", "memory of the device for tensors", FieldUnit::bytes, 1, kMemory, true,
     [](M& m) -> std::uint64_t& { return m.device.memory.value; }},
    {"device.count", "number of devices, which share host memory and SSDs", FieldUnit::count, 1, 64, false,
     [](M& m) -> std::uint64_t& { return m.device.count; }, 1},
    {"device.gflops", "billions of floating-point operations per second, FP32; 0: not known", FieldUnit::count, 0,
     kMostGflops, false, [](M& m) -> std::uint64_t& { return m.device.rates.gflops; }, 0, false},
    {"device.tensor_gflops", "the same of convolutions, on tensor cores; 0: as gflops", FieldUnit::count, 0,
     kMostGflops, false, [](M& m) -> std::uint64_t& { return m.device.rates.tensor_gflops; }, 0, false},
    {"device.bandwidth", "rate of the device's own memory; 0: not known", FieldUnit::rate, 0, kRate, false,
     [](M& m) -> std::uint64_t& { return m.device.rates.bandwidth.value; }, 0, false},
    {"device.launch", "time that each kernel takes besides", FieldUnit::duration, 0, kLatency, false,
     [](M& m) -> std::uint64_t& { return m.device.rates.launch.value; }, 0, false},
    {"link.to_device", "rate of all moves into the device together", FieldUnit::rate, kLeastRate, kRate, true,
     [](M& m) -> std::uint64_t& { return m.link.to_device.value; }},
    {"link.from_device", "rate of all moves out of the device together", FieldUnit::rate, kLeastRate, kRate, true,
     [](M& m) -> std::uint64_t& { return m.link.from_device.value; }},
    {"link.latency", "latency of each move between device and host", FieldUnit::duration, 0, kLatency, false,
     [](M& m) -> std::uint64_t& { return m.link.latency.value; }},
    {"host.memory", "host memory for tensors; 0: none", FieldUnit::bytes, 0, kMemory, true,
     [](M& m) -> std::uint64_t& { return m.host.memory.value; }},
    {"host.keeps_copies", "switch by which what goes to the device leaves its copy in host memory (0: no, 1: yes)",
     FieldUnit::count, 0, 1, false, [](M& m) -> std::uint64_t& { return m.host.keeps_copies; }},
    {"ssd.read", "read rate of one drive", FieldUnit::rate, kLeastRate, kRate, true,
     [](M& m) -> std::uint64_t& { return m.ssd.read.value; }},
    {"ssd.write", "write rate of one drive", FieldUnit::rate, kLeastRate, kRate, true,
     [](M& m) -> std::uint64_t& { return m.ssd.write.value; }},
    {"ssd.read_latency", "latency of each move from the SSD", FieldUnit::duration, 0, kLatency, false,
     [](M& m) -> std::uint64_t& { return m.ssd.read_latency.value; }},
    {"ssd.write_latency", "latency of each move to the SSD", FieldUnit::duration, 0, kLatency, false,
     [](M& m) -> std::uint64_t& { return m.ssd.write_latency.value; }},
    {"ssd.count", "number of drives, used in parallel", FieldUnit::count, 1, 1024, false,
     [](M& m) -> std::uint64_t& { return m.ssd.count; }},
    {"ssd.capacity", "capacity of one drive; 0: there is none", FieldUnit::bytes, 0, kMemory, true,
     [](M& m) -> std::uint64_t& { return m.ssd.capacity.value; }},
    {"flash.channels", "channels of one drive's flash", FieldUnit::count, 1, 256, false,
     [](M& m) -> std::uint64_t& { return flash(m).channels; }},
    {"flash.dies", "dies of a channel", FieldUnit::count, 1, 64, false,
     [](M& m) -> std::uint64_t& { return flash(m).dies; }},
    {"flash.planes", "planes of a die", FieldUnit::count, 1, 16, false,
     [](M& m) -> std::uint64_t& { return flash(m).planes; }},
    {"flash.page", "size of a flash page, a power of two", FieldUnit::bytes, 512, kPieceBytes.value, false,
     [](M& m) -> std::uint64_t& { return flash(m).page.value; }},
    {"flash.pages", "pages of a flash block", FieldUnit::count, 1, 65536, false,
     [](M& m) -> std::uint64_t& { return flash(m).pages; }},
    {"flash.channel_rate", "rate of one channel", FieldUnit::rate, kLeastRate, kRate, false,
     [](M& m) -> std::uint64_t& { return flash(m).channel_rate.value; }},
    {"flash.read_time", "time that a plane takes to read a page", FieldUnit::duration, 0, kLatency, false,
     [](M& m) -> std::uint64_t& { return flash(m).read_time.value; }},
    {"flash.program_time", "time that a plane takes to write a page", FieldUnit::duration, 0, kLatency, false,
     [](M& m) -> std::uint64_t& { return flash(m).program_time.value; }},
    {"flash.erase_time", "time that a plane takes to erase a flash block", FieldUnit::duration, 0, kLatency, false,
     [](M& m) -> std::uint64_t& { return flash(m).erase_time.value; }},
    {"flash.over_provisioning", "flash beyond the capacity, in percent of it", FieldUnit::percent, 0, 1000, false,
     [](M& m) -> std::uint64_t& { return flash(m).over_provisioning; }},
    {"flash.reserve", "superblocks that collecting garbage keeps free", FieldUnit::count, 1, 1024, false,
     [](M& m) -> std::uint64_t& { return flash(m).reserve; }},
    {"flash.dwpd", "drive writes a day that the flash endures for five years", FieldUnit::count, 1, 1000, false,
     [](M& m) -> std::uint64_t& { return flash(m).dwpd; }},
    {"fault.cost", "time that handling one page fault takes", FieldUnit::duration, 0, kLatency, true,
     [](M& m) -> std::uint64_t& { return m.fault.cost.value; }},
    {"fault.bytes", "bytes that one page fault brings", FieldUnit::bytes, 4096, 1 << 30, true,
     [](M& m) -> std::uint64_t& { return m.fault.bytes.value; }},
    {"fault.latency", "time that each batch of page faults takes besides", FieldUnit::duration, 0, kLatency, false,
     [](M& m) -> std::uint64_t& { return m.fault.latency.value; }, 0},
    {"fault.batch", "page faults that are handled together at most", FieldUnit::count, 1, 4096, false,
     [](M& m) -> std::uint64_t& { return m.fault.batch; }, 1},
    {"fault.widen", "faults bring their neighbours, twice as many each time; 0: no, 1: yes", FieldUnit::count, 0, 1,
     false, [](M& m) -> std::uint64_t& { return m.fault.widen; }, 0},
});

Result<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    return fail(Errc::bad_input, fmt::format("'{}' is not a whole number; write it like 4", text));
  return value;
}

Result<std::uint64_t> parse_value(FieldUnit unit, std::string_view text) {
  switch (unit) {
    case FieldUnit::bytes: {
      TRY(const Bytes size, parse_bytes(text));
      return size.value;
    }
    case FieldUnit::rate: {
      TRY(const BytesPerSecond rate, parse_rate(text));
      return rate.value;
    }
    case FieldUnit::duration: {
      if (text == "0") return 0;  // the one number whose unit does not matter
      TRY(const Nanos time, parse_duration(text));
      return time.value;
    }
    case FieldUnit::count:
      return parse_count(text);
    case FieldUnit::percent:
      return parse_percent(text);
  }
  return 0;
}

}  // namespace

std::span<const MachineField> machine_fields() { return kFields; }

std::string known_machine_keys() {
  std::string keys;
  for (const MachineField& field : kFields) keys.append(keys.empty() ? "" : ", ").append(field.key);
  return keys;
}

const MachineField* find_machine_field(std::string_view key) {
  for (const MachineField& field : kFields)
    if (field.key == key) return &field;
  return nullptr;
}

Result<std::uint64_t> parse_field(const MachineField& field, std::string_view text) {
  const auto value = parse_value(field.unit, text);
  if (!value) return fail(Errc::bad_input, fmt::format("{}: {}", field.key, value.error().message));
  if (*value < field.least || *value > field.most)
    return fail(Errc::bad_input, fmt::format("{}: '{}' is too {}; the {} must be between {} and {}", field.key, text,
                                             *value < field.least ? "small" : "large", field.meaning,
                                             field_text(field, field.least), field_text(field, field.most)));
  return *value;
}

std::string field_text(const MachineField& field, std::uint64_t value) {
  switch (field.unit) {
    case FieldUnit::bytes:
      return to_text(Bytes{value});
    case FieldUnit::rate:
      return to_text(BytesPerSecond{value});
    case FieldUnit::duration:
      return to_text(Nanos{value});
    case FieldUnit::count:
      return std::to_string(value);
    case FieldUnit::percent:
      return fmt::format("{} %", value);
  }
  return "?";
}

}  // namespace spillway
