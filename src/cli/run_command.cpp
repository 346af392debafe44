#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <ranges>
#include <string_view>

#include "base/files.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/gpu_option.h"
#include "cli/json_report.h"
#include "cli/machine_option.h"
#include "cli/predictions.h"
#include "cli/record_folder.h"
#include "cli/script.h"
#include "machines/cpu/usable_memory.h"
#include "report/progress.h"
#include "runtime/given_plan.h"
#include "runtime/run_policy.h"
#include "session/disk_watch.h"
#include "session/hook_side.h"
#include "session/launch.h"
#include "session/live_status.h"
#include "session/own_process.h"
#include "session/read_report.h"
#include "session/session_pager.h"
#include "session/teardown.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kForPython = 1_GiB;  // with PyTorch, and what a script holds besides tensors
constexpr Nanos kLeastIoTimeout{100'000'000};

struct RunOptions {
  std::string ssd = "/var/tmp", eviction_path = "automatic", policy{kAuto}, io_timeout = "30s";
  std::string device = "auto";
  std::optional<std::string> device_memory, host_memory, pinned_memory, block_size, ssd_capacity, json, record, plan;
  bool quiet = false, strict = false;
  std::string program;
  std::vector<std::string> command;
};

// What a run without limit takes of what is free.
Bytes for_tensors(Bytes free) {
  const Bytes kept = std::min(kForPython, Bytes{free.value / 2});
  return free - std::max(kept, Bytes{free.value / 10});
}

Result<std::uint64_t> size_option(std::string_view option, const std::string& text) {
  const Result<Bytes> size = parse_bytes(text);
  if (size) return size->value;
  return fail(Errc::usage, fmt::format("{}: {}", option, size.error().message));
}

Result<> check_blocks(std::string_view option, std::uint64_t size, const SessionConfig& config,
                      std::string_view without) {
  if (size >= config.block_bytes) return {};
  return fail(Errc::usage, fmt::format("{} {} is less than one block of {}; give more, or leave it out to use {}",
                                       option, to_text(Bytes{size}), to_text(Bytes{config.block_bytes}), without));
}

// Without these nothing is planned, and the run goes on all the same. Of a GPU the links are measured already.
void measure(Session& session, const std::optional<Gpu>& gpu, bool quiet) {
  SessionConfig& config = session.config;
  const auto machine = machine_by_name("this", config.ssd_directory.data(), quiet);
  if (!machine)
    return add_notice(session, fmt::format("no moves are planned ahead, since this machine could not be measured: {}",
                                           machine.error().message));
  config.rates = {.to_device = machine->link.to_device,
                  .from_device = machine->link.from_device,
                  .ssd_read = machine->ssd_read(),
                  .ssd_write = machine->ssd_write(),
                  .ssd_read_latency = machine->ssd.read_latency,
                  .ssd_write_latency = machine->ssd.write_latency,
                  .fault = machine->fault.cost};
  if (!gpu) return;
  config.rates.to_device = gpu->to_device;
  config.rates.from_device = gpu->from_device;
  config.rates.fault = std::ranges::find(gpu->blocks, Bytes{config.block_bytes}, &BlockCost::bytes)->fault;
}

Result<Nanos> io_timeout_of(const std::string& text) {
  const Result<Nanos> io_timeout = parse_duration(text);
  if (!io_timeout) return fail(Errc::usage, fmt::format("--io-timeout: {}", io_timeout.error().message));
  if (*io_timeout > Nanos{} && *io_timeout < kLeastIoTimeout)
    return fail(Errc::usage,
                fmt::format("--io-timeout {}: a disk may well take that long; give {} or more, or 0s to wait "
                            "for ever",
                            text, to_text(kLeastIoTimeout)));
  return *io_timeout;
}

Result<> configure_gpu(const RunOptions& options, const Gpu& gpu, SessionConfig& config) {
  constexpr Bytes kForOthers = 1_GiB;  // CUDA's own, libraries' code, other allocators
  config.gpu = gpu.ordinal;
  config.cuda_version = gpu.cuda_version;
  config.gpu_name = gpu.name;
  TRY_VOID(set_text(config.cuda_driver, gpu.driver.data(), "the path of the CUDA driver"));
  if (config.unlimited)
    config.device_budget_bytes = excess(gpu.free, std::min(kForOthers, Bytes{gpu.free.value / 8})).value;
  if (Bytes{config.device_budget_bytes} > gpu.memory)
    return fail(Errc::usage,
                fmt::format("--device-memory {} is more than the {} of the {}; give less",
                            to_text(Bytes{config.device_budget_bytes}), to_text(gpu.memory), gpu.name.data()));
  TRY(const BlockCost block, block_of(gpu, options.block_size, Bytes{config.device_budget_bytes}));
  config.block_bytes = block.bytes.value;
  TRY_VOID(check_blocks("--device-memory", config.device_budget_bytes, config, "all that is free"));
  if (options.pinned_memory) {
    TRY(config.pinned_budget_bytes, size_option("--pinned-memory", *options.pinned_memory));
    TRY_VOID(check_blocks("--pinned-memory", config.pinned_budget_bytes, config, "half of what is free"));
  } else {
    TRY(const Bytes pinned, default_pinned_memory());
    config.pinned_budget_bytes = pinned.value;
  }
  const auto wanted = options.host_memory ? std::optional(Bytes{config.host_budget_bytes}) : std::nullopt;
  const PinnedParts parts = parts_of(Bytes{config.pinned_budget_bytes}, wanted, block.bytes);
  if (wanted && parts.host < *wanted && options.pinned_memory)
    return fail(Errc::usage,
                fmt::format("--host-memory {} is more than --pinned-memory {} has room for: a GPU copies from pinned "
                            "memory, and {} of it are for the SSD; give less of the one or more of the other",
                            to_text(*wanted), to_text(Bytes{config.pinned_budget_bytes}), to_text(parts.staging)));
  TRY(const Bytes free, free_memory());
  const bool is_given = options.pinned_memory || options.host_memory;
  if (const Bytes host = wanted.value_or(parts.host); is_given && host + parts.staging > free)
    return fail(Errc::usage, fmt::format("{} is more than can be pinned: a GPU copies from pinned memory, {} are free, "
                                         "and {} of it are for the SSD; give less",
                                         options.pinned_memory ? "--pinned-memory " + *options.pinned_memory
                                                               : "--host-memory " + *options.host_memory,
                                         to_text(free), to_text(parts.staging)));
  config.host_budget_bytes = wanted.value_or(parts.host).value;
  config.pinned_budget_bytes = config.host_budget_bytes + parts.staging.value;
  return {};
}

// Nothing of the CPU's pages is needed for a GPU.
Result<CpuDevice::Found> ssd_of(const SessionConfig& config) {
  TRY(const SpillFile file,
      SpillFile::open(config.ssd_directory.data(), Bytes{config.ssd_capacity_bytes}, Bytes{config.block_bytes}));
  return CpuDevice::Found{.method = EvictionMethod::automatic, .ssd = file.capacity()};
}

Result<> configure(const RunOptions& options, Nanos io_timeout, Session& session) {
  SessionConfig& config = session.config;
  config.unlimited = !options.device_memory;
  const auto found_gpu = gpu_of(options.device);
  if (!found_gpu)
    return fail(found_gpu.error().code,
                found_gpu.error().message + "; give --device cpu to limit the CPU's tensors instead");
  const std::optional<Gpu>& gpu = *found_gpu;
  if (options.device_memory) {
    TRY(config.device_budget_bytes, size_option("--device-memory", *options.device_memory));
  }
  if (options.host_memory) {
    TRY(config.host_budget_bytes, size_option("--host-memory", *options.host_memory));
  }
  if (gpu) TRY_VOID(configure_gpu(options, *gpu, config));
  if (options.host_memory && config.host_budget_bytes != 0)
    TRY_VOID(check_blocks("--host-memory", config.host_budget_bytes, config, "none"));
  if (!gpu && options.pinned_memory)
    return fail(Errc::usage, "--pinned-memory: it is for a GPU, and this run limits the CPU's tensors; leave it out");
  if (!gpu && options.block_size)
    return fail(Errc::usage, "--block-size: it is for a GPU, and this run limits the CPU's tensors; leave it out");
  if (!gpu && options.strict)
    return fail(Errc::usage,
                "--strict: it checks a GPU's launches, and this run limits the CPU's tensors; leave it out");
  if (gpu && options.eviction_path != "automatic")
    return fail(Errc::usage, "--eviction-path: it is for the CPU, and this run limits a GPU; leave it out");
  config.strict = options.strict;
  if (options.ssd_capacity) {
    TRY(config.ssd_capacity_bytes, size_option("--ssd-capacity", *options.ssd_capacity));
    TRY_VOID(check_blocks("--ssd-capacity", config.ssd_capacity_bytes, config, "what the file system has"));
  }
  config.eviction_path = options.eviction_path == "move"   ? EvictionMethod::move
                         : options.eviction_path == "copy" ? EvictionMethod::copy
                                                           : EvictionMethod::automatic;
  config.io_timeout_ns = io_timeout.value;
  TRY_VOID(set_text(config.policy, options.policy, "--policy"));
  std::error_code error;
  if (options.ssd.empty()) return fail(Errc::usage, "--ssd: it names no folder; name one on an SSD, such as /var/tmp");
  TRY_VOID(set_text(config.ssd_directory, fs::absolute(options.ssd, error).string(), "--ssd"));
  if (options.plan) {
    if (options.plan->empty())
      return fail(Errc::usage,
                  "--plan: it names no file; name one that `spillway plan` or a run with --record has written");
    TRY(const GivenPlan given, load_given_plan(*options.plan));
    TRY_VOID(set_text(config.plan_path, fs::absolute(given.file, error).string(), "--plan"));
  }
  if (config.unlimited && !gpu) {
    TRY(const Bytes free, free_memory());
    config.device_budget_bytes = excess(for_tensors(free), Bytes{config.host_budget_bytes}).value;
    if (config.device_budget_bytes == 0)
      return fail(Errc::usage,
                  fmt::format("--host-memory {} leaves no device memory of the {} that are free; give less",
                              to_text(Bytes{config.host_budget_bytes}), to_text(free)));
  }
  TRY(const CpuDevice::Found found,
      in_own_process<CpuDevice::Found>(
          {.disk = config.ssd_directory.data(),
           .limit = limit_of_many_calls(io_timeout),
           .if_late = "a block on trial was to be written there; check the disk, name another "
                      "directory with --ssd, or allow more time with --io-timeout"},
          [&] { return gpu ? ssd_of(config) : CpuDevice::check(pager_config(config)); }));
  config.eviction_path = found.method;
  config.ssd_free_bytes = found.ssd.value;
  TRY(const RunPolicy policy, run_policy(options.policy));
  if (policy.plans() || config.unlimited) measure(session, gpu, options.quiet);
  return {};
}

// As execvp(3) would. The record of the last run is not lost for a program that is not there.
bool finds_program(const std::string& program) {
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  for (const auto folder : std::views::split(std::string_view(path != nullptr ? path : "/bin:/usr/bin"), ':'))
    if (::access((fs::path(std::string_view(folder)) / program).c_str(), X_OK) == 0) return true;
  return false;
}

// So that whoever runs next has the space, and can unmount the disk. Until a signal asks us to end, but not for ever.
void wait_for_space(const Teardown& teardown, const std::string& directory, bool quiet) {
  constexpr int kMost = 100;
  constexpr Nanos kLookEvery{100'000'000};
  int looks = 0;
  do
    if (teardown.is_over(kLookEvery)) return;
  while (++looks < kMost && !has_waiting_signal());
  if (quiet) return;
  tell(
      fmt::format("spillway: the disk of {} may not have given back yet what the script had there; it will by itself\n",
                  directory));
}

Result<> check_record(const RunOptions& options) {
  if (!options.record) return {};
  if (options.record->empty())
    return fail(Errc::usage, "--record: it names no folder; name one to write to, such as records");
  if (options.record->starts_with("--"))
    return fail(Errc::usage, fmt::format("--record {}: that is an option; write ./{} if it is the name of a folder",
                                         *options.record, *options.record));
  return {};
}

fs::path resolved(const std::string& file) {
  std::error_code error;
  return fs::weakly_canonical(fs::absolute(file, error), error);
}

// Nothing is written where something else is read or written.
Result<> check_files(const RunOptions& options, const std::optional<JsonReport>& json, const RecordFolder& record) {
  if (options.record && json && record.takes(json->path()))
    return fail(Errc::usage, fmt::format("--json {}: that is where --record writes; name another file", *options.json));
  if (options.plan && options.record && record.takes(resolved(*options.plan)))
    return fail(Errc::usage, fmt::format("--plan {}: that is where --record writes, and it would be gone; name another "
                                         "folder for the record",
                                         *options.plan));
  if (options.plan && json && resolved(*options.plan) == resolved(json->path()))
    return fail(Errc::usage, fmt::format("--json {}: that is the plan; name another file", *options.json));
  return {};
}

Result<> record_into(const RecordFolder& record, SessionConfig& config) {
  TRY(const std::string trace, record.trace_file());
  TRY_VOID(set_text(config.record_path, trace, "--record"));
  TRY(const std::string blocks, record.blocks());
  TRY_VOID(set_text(config.blocks_path, blocks, "--record"));
  TRY(const std::string journal, record.journal_file());
  return set_text(config.journal_path, journal, "--record");
}

// Whether a disk has stopped answering, and what is left to be said of it.
struct DiskEnd {
  bool hangs = false, told = false;
  std::string untold;
};

DiskEnd end_for(const std::string& overdue, Session& session) {
  // Ending what waits for a disk may take long, and must not wait for who reads this.
  const bool tells = can_tell();
  if (tells) tell(fmt::format("spillway: error: {}\n", overdue));
  const bool is_first = session.state.error.set(overdue);
  return {.hangs = true, .told = is_first && tells, .untold = !is_first && !tells ? overdue : ""};
}

void predict_for(RunReport& report, int status, const SessionConfig& config, bool quiet) {
  // Who stops a script from the keyboard has seen enough of it, and reads on. A shell says it by its own status, too.
  const bool was_killed = status > 128 && status < 128 + NSIG && status != 128 + SIGINT;
  if (was_killed) {
    report.not_predicted = fmt::format("the script ended with status {}, that of a signal", status);
    return;
  }
  std::optional<Progress> progress;
  if (!quiet) progress.emplace("planning for other budgets (Ctrl-C: no more)", 0);
  add_predictions(report, config, [&, made = std::uint64_t{0}]() mutable {
    if (progress) progress->at(++made);
    return !has_waiting_signal();  // They are blocked since the script has ended.
  });
}

Result<int> run(const RunOptions& options) {
  TRY(const Nanos io_timeout, io_timeout_of(options.io_timeout));
  TRY_VOID(check_record(options));
  RecordFolder record(options.record.value_or(""));
  const bool records = options.record && finds_program(options.command.front());
  if (records) TRY_VOID(record.open(limit_of_many_calls(io_timeout)));
  std::optional<JsonReport> json;
  if (options.json) {
    TRY(json, JsonReport::open(*options.json, limit_of_many_calls(io_timeout)));
  }
  TRY_VOID(check_files(options, json, record));  // Their disks answer.
  TRY(SharedSession session, SharedSession::create());
  TRY_VOID(configure(options, io_timeout, *session));
  TRY(const Teardown teardown, Teardown::make());
  TRY_VOID(set_text(session->config.teardown_path, teardown.path(), "the path of a pipe"));
  const bool wants_report = !options.quiet || options.json;
  std::optional<MemoryFile> unasked;
  if (records) {
    TRY_VOID(record_into(record, session->config));
  } else if (wants_report && session->config.unlimited && session->config.rates.are_known()) {
    TRY(unasked, MemoryFile::make());
    TRY_VOID(set_text(session->config.record_path, unasked->path(), "--record"));
    session->config.records_for_itself = true;
  }
  std::optional<LiveStatus> status;
  if (!options.quiet) status.emplace(*session);
  DiskWatch disks(*session);
  DiskEnd end;
  TRY(const Supervised supervised, launch(session, options.command, [&] {
        if (status) status->draw();
        const std::string overdue = disks.overdue(Nanos{monotonic_ns()});
        if (overdue.empty()) return true;
        record.leave();
        status.reset();
        end = end_for(overdue, *session);
        return false;
      }));
  status.reset();
  if (!end.hangs) wait_for_space(teardown, session->config.ssd_directory.data(), options.quiet);
  if (!end.untold.empty()) tell(fmt::format("spillway: error: {}\n", end.untold));
  RunReport report = read_report(*session, supervised);
  if (report.unlimited && report.made_tensors && wants_report && !end.hangs)
    predict_for(report, supervised.exit_status, session->config, options.quiet);
  if (end.hangs && report.unlimited) report.not_predicted = "a disk had stopped answering";
  if (unasked) {  // Nobody asked for that trace.
    report.recorded.clear();
    report.not_recorded.clear();
  }
  if (!report.error.empty() && !end.told) tell(fmt::format("spillway: error: {}\n", report.error));
  if (supervised.started && !options.quiet) tell(to_table(report));
  // The status stays the script's own, whatever becomes of the report.
  if (json)
    if (const auto written = json->write(to_json(report), limit_of_many_calls(io_timeout)); !written)
      report_error(written.error());
  return supervised.exit_status;
}

}  // namespace

void add_run_command(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("run", "Run a PyTorch script with less memory than it needs");
  command->footer(
      "Examples:\n"
      "  spillway run --device-memory 8GiB --ssd /mnt/nvme -- python3 train.py\n"
      "  spillway run --device-memory 1GiB --host-memory 2GiB --json report.json -- python3 train.py --epochs 3\n"
      "  spillway run -- python3 train.py --steps 5      how much it needs, and how it would do with less\n"
      "The script is not changed: tensors that do not fit the device memory are moved out and come back when touched.\n"
      "The first process that makes tensors with PyTorch owns the budget; others run unmanaged and are named in the "
      "report.\n"
      "When the script has ended, background processes that it left are ended too.\n"
      "Exit status: the script's own, 128+N on signal N, 127 if there is no such program, 126 if it cannot be started; "
      "before it starts, 1 (error) or 2 (wrong usage); 1, and why, if it had to be ended because a tensor or a disk "
      "was "
      "lost.");
  auto options = std::make_shared<RunOptions>();
  command
      ->add_option(
          "--device", options->device,
          "whose tensors are limited: auto (default) is the first GPU, else the CPU; cpu, cuda, cuda:1; tensors "
          "elsewhere are left alone")
      ->type_name("NAME");
  command
      ->add_option("--device-memory", options->device_memory,
                   "what tensors may occupy, such as 8GiB (default: what is free; then it is measured how much "
                   "is needed, and predicted how less would do)")
      ->type_name("SIZE");
  command
      ->add_option("--host-memory", options->host_memory,
                   "where tensors go before the SSD (default: none; of a GPU all of --pinned-memory)")
      ->type_name("SIZE");
  command
      ->add_option("--pinned-memory", options->pinned_memory,
                   "of a GPU: host memory to lock for copies, a part of it for the SSD (default: half of what is free)")
      ->type_name("SIZE");
  command
      ->add_option(
          "--block-size", options->block_size,
          "of a GPU: what moves at a time, 2MiB, 4MiB, 8MiB, 16MiB or 32MiB (default: the smallest that the GPU "
          "maps fast beside copying it)")
      ->type_name("SIZE");
  command->add_option("--ssd", options->ssd, "a folder on an SSD; nothing stays there (default: /var/tmp)")
      ->type_name("DIR");
  command->add_option("--ssd-capacity", options->ssd_capacity, "use at most this (default: what is free there)")
      ->type_name("SIZE");
  command
      ->add_option("--io-timeout", options->io_timeout,
                   "end the run when the SSD has not answered for so long (default: 30s; 0s: wait for ever)")
      ->type_name("TIME");
  command->add_option("--eviction-path", options->eviction_path, "move: Linux 6.8; copy: older (default: by a probe)")
      ->check(CLI::IsMember({"automatic", "move", "copy"}))
      ->type_name("PATH");
  CLI::Option* plan = command->add_option("--plan", options->plan,
                                          "follow this plan in the iteration that it was made for (see --record)");
  plan->type_name("FILE");
  command
      ->add_option(
          "--policy", options->policy,
          "auto (default): learns what kernels use, and plans ahead once an iteration has repeated itself, with "
          "what simulates best; or always that one (see `spillway simulate --help`)")
      ->check(CLI::IsMember(run_policy_names()))
      ->type_name("NAME")
      ->excludes(plan);
  command->add_flag("--quiet", options->quiet, "no status line and no report on the terminal, errors only");
  command->add_option("--json", options->json, "write the report there, for programs")->type_name("FILE");
  command
      ->add_option(
          "--record", options->record,
          "write the steady iteration into DIR/model.trace, the plan followed into DIR/blocks.plan, and all that "
          "happened into DIR/run.journal (see `spillway replay --help`)")
      ->type_name("DIR");
  command
      ->add_flag(
          "--strict", options->strict,
          "of a GPU: run one launch at a time, with nothing accessible but what it was seen to touch, so that it "
          "faults on all else; very slow")
      ->group("For developers");
  add_script(*command, options->program);
  command->callback([options, command, &status] {
    options->command = script_of(*command, options->program);
    status = finish(run(*options));
  });
}

}  // namespace spillway
