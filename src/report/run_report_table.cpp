#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/median.h"
#include "base/text.h"
#include "base/version.h"
#include "report/run_report.h"
#include "report/table.h"

namespace spillway {
namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;  // what, and its figures

std::string plural(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string iteration_text(const RunReport& report) {
  const auto one = [](const IterationFigures& iteration) {
    return fmt::format("{:.3f} s ({})", seconds(iteration.duration), plural(iteration.faults, "fault", "faults"));
  };
  const auto& all = report.iterations;
  if (all.empty()) return "none seen (no optimizer step or backward pass ended)";
  if (all.size() == 1) return "1: " + one(all.front());
  const std::string first_last[] = {"first " + one(all.front()), "last " + one(all.back())};
  if (all.size() == 2) return fmt::format("2: {}, {}", first_last[0], first_last[1]);
  return fmt::format("{}: {}, median {:.3f} s, {}", report.iteration_count, first_last[0],
                     seconds(median(all, &IterationFigures::duration).duration), first_last[1]);
}

std::string_view reason_of(PlanEnd end) {
  switch (end) {
    case PlanEnd::slower:
      return "iterations waited longer than before";
    case PlanEnd::not_needed:
      return "to go on without it is predicted to be as good";
    case PlanEnd::other_iteration:
    case PlanEnd::none:
      break;
  }
  return "the script does something else";
}

std::string plan_text(const RunReport& report) {
  const PlanFigures& last = report.plans.back();
  const PlanFigures& first = report.plans.front();
  const std::string before = report.plan_count > 1
                                 ? fmt::format(" (plan {}; the first was {}, from {} on)", report.plan_count,
                                               first.policy.view(), first.adopted_at_iteration)
                                 : "";
  return fmt::format(
             "{}{} from iteration {} on{}, predicted {:.3f} s{}{} when it was made, in {:.3f} s (the links take "
             "{:.3f} s, and let kernels wait for {:.3f} s at least)",
             last.policy.view(), last.given == 0 ? "" : fmt::format(" of {}", report.given_plan),
             last.adopted_at_iteration, before, seconds(last.predicted),
             last.optimizer_steps > 1 ? fmt::format(" for {} optimizer steps", last.optimizer_steps) : "",
             without_what(report), seconds(last.planning), seconds(last.link_bound), seconds(last.least_wait)) +
         (last.end == PlanEnd::none
              ? ""
              : fmt::format("; given up at {}, since {}", last.dropped_at_iteration, reason_of(last.end)));
}

// The first iteration of a script makes more than the others: the optimizer's states, usually less than half as many.
bool have_as_many(const RunReport::Phase& a, const RunReport::Phase& b) {
  const auto [least, most] = std::minmax(a.kernels, b.kernels);
  return 2 * most < 3 * least || most == 0;
}

// The later one works for much longer than the earlier one took altogether.
bool does_more(const RunReport::Phase& later, const RunReport::Phase& earlier) {
  return later.worked.value > earlier.duration.value / 2 * 3;
}

// "3 iterations, 4.210 s and 12 faults each (median), 1.31 times as fast as demand paging": as the first one that does
// about the same.
void add_phases(const RunReport& report, Lines& lines) {
  const std::vector<RunReport::Phase> phases = phases_of(report);
  if (phases.size() < 2) return;
  for (const RunReport::Phase& phase : phases) {
    std::string text =
        fmt::format("{}, {:.3f} s and {} each (median)", plural(phase.iterations, "iteration", "iterations"),
                    seconds(phase.duration), plural(phase.faults, "fault", "faults"));
    const RunReport::Phase& first = phases.front();
    const auto name = [&](const RunReport::Phase& one) {
      return &one == &first && one.iterations == 1 ? "the first iteration" : to_text(one.kind);
    };
    const auto alike = std::ranges::find_if(
        phases, [&](const auto& other) { return have_as_many(phase, other) && !does_more(phase, other); });
    // A broken process may have left numbers that are not even like themselves.
    const bool is_compared = alike != phases.end() && &*alike != &phase;
    if (is_compared && phase.duration > Nanos{} && alike->duration > Nanos{}) {
      const double faster = seconds(alike->duration) / seconds(phase.duration);
      text += fmt::format(", {:.2f} times as {} as {}", std::max(faster, 1 / faster), faster < 1 ? "long" : "fast",
                          name(*alike));
    } else if (phase.kernels > 0 && first.kernels > 0 && !have_as_many(phase, first)) {
      text += fmt::format(", of {} operators ({}: {})", phase.kernels, name(first), first.kernels);
    }
    lines.emplace_back(to_text(phase.kind), text);
  }
}

// "activation17 made by aten::mm, 96 MiB: 1.2 GiB moved, 300 MiB of it when it was waited for"
std::string cost_text(const CostFigures& cost) {
  std::string text = printable(cost.name.view());
  if (!cost.maker.view().empty())
    text += fmt::format("{}made by {}", text.empty() ? "" : " ", printable(cost.maker.view()));
  if (text.empty()) text = "made by no operator";
  return fmt::format("{}, {}: {} moved, {} of it when it was waited for", text, to_text(cost.bytes),
                     to_text(cost.moved), to_text(cost.waited_for));
}

// A run that has seen enough of an iteration watches no operators any more: the script may have gone on to another one.
// Half or twice as long is more than noise.
std::string left_the_recorded(const RunReport& report) {
  constexpr std::size_t kLast = 5;
  const auto& all = report.iterations;
  if (all.empty() || report.recorded_steps != 1) return {};  // Of several steps it is followed to the end.
  const std::vector last(all.end() - static_cast<std::ptrdiff_t>(std::min(kLast, all.size())), all.end());
  const double then = seconds(report.unlimited_iteration),
               now = seconds(median(last, &IterationFigures::duration).duration);
  if (now <= 2 * then && then <= 2 * now) return {};
  return fmt::format(
      "They are for iterations of {:.3f} s, which were recorded; the last ones took {:.3f} s: other work, or a busy "
      "machine\n",
      then, now);
}

std::string prediction_table(const RunReport& report) {
  if (!report.not_predicted.empty())
    return fmt::format("\nHow it would do with less memory cannot be said: {}\n", report.not_predicted);
  if (report.predictions.empty()) return {};
  Table table({{"--device-memory", Align::left},
               {"of the peak"},
               {"an iteration"},
               {"times as long"},
               {"moves by", Align::left}});
  const double now = seconds(report.unlimited_iteration);
  for (const RunReport::Prediction& prediction : report.predictions) {
    const bool runs = prediction.iteration.has_value();
    const double then = runs ? seconds(*prediction.iteration) : 0;
    const bool has_least = prediction.device >= report.least_device_budget;
    table.add_row({fmt::format("{}MiB", prediction.device.value >> 20), fmt::format("{:.0f} %", 100 * prediction.part),
                   runs        ? fmt::format("{:.3f} s", then)
                   : has_least ? "not known"
                               : "cannot run",
                   runs && now > 0 ? fmt::format("{:.2f}", then / now) : "",
                   !runs                       ? has_least && report.has_optimizer ? "no plan" : ""
                   : prediction.policy.empty() ? "nothing"
                                               : prediction.policy});
  }
  const Bytes least = report.least_device_budget;
  const bool needs_more = std::ranges::any_of(report.predictions, [&](const auto& one) { return one.device < least; });
  const bool not_known =
      std::ranges::any_of(report.predictions, [&](const auto& one) { return !one.iteration && one.device >= least; });
  return fmt::format(
      "\nPredicted with less memory, {}{}:\n{}{}{}",
      report.has_optimizer ? "once a plan of --policy auto is followed"
                           : "without a plan, since the script made no step of a torch.optim optimizer",
      needs_more ? fmt::format(" (a run needs {} at least)", to_text(least)) : "", table.text(),
      not_known
          ? "not known: what no plan moves (small tensors, mostly) leaves too little there, or the SSD cannot take the "
            "rest\n"
          : "",
      left_the_recorded(report));
}

std::string unmanaged_text(const RunReport& report) {
  constexpr std::size_t kShown = 4;
  std::string text = plural(report.unmanaged_count, "process", "processes") + " besides the first that made tensors:";
  for (std::size_t i = 0; i < std::min(kShown, report.unmanaged.size()); ++i)
    text += fmt::format("{} {} (pid {})", i == 0 ? "" : ",", printable(report.unmanaged[i].name, 80),
                        report.unmanaged[i].pid);
  if (report.unmanaged_count > kShown) text += fmt::format(" and {} more", report.unmanaged_count - kShown);
  return text;
}

// "3 GiB written (1.8 TiB an hour), 1.2 GiB of it for moves that were called back or for forked processes"
std::string written_text(const RunReport& report) {
  std::string text =
      fmt::format("{} written ({} an hour)", to_text(report.memory.written), to_text(report.ssd_written_per_hour()));
  const Bytes moved = report.memory.moved(Tier::device, Tier::ssd) + report.memory.moved(Tier::host, Tier::ssd);
  const Bytes called_back = excess(report.memory.written, moved);
  if (called_back.value > report.memory.written.value / 20)
    text += fmt::format(", {} of it for moves that were called back or for forked processes", to_text(called_back));
  return text;
}

// Consumer drives of 1 TB are usually guaranteed for 600 TB.
std::optional<std::string> endurance_text(const RunReport& report) {
  constexpr Bytes kMuch{1'000'000'000'000}, kEnoughToTell{10'000'000'000}, kUsual{600 * kMuch.value};
  const Bytes an_hour = report.ssd_written_per_hour();
  if (an_hour < kMuch || report.memory.written < kEnoughToTell) return std::nullopt;
  const std::uint64_t days = std::max<std::uint64_t>(1, kUsual.value / (24 * an_hour.value));
  return fmt::format(
      "the SSD is written at a rate that wears a usual 1 TB drive out in {} (600 TB); more memory (--device-memory, "
      "--host-memory) writes less",
      plural(days, "day", "days"));
}

void add_memory(const RunReport& report, Lines& lines) {
  const auto& moved = report.memory.moved;
  lines.emplace_back("device memory",
                     report.unlimited ? fmt::format("peak {}; not limited, there is {}",
                                                    to_text(report.memory.peak.device), to_text(report.device_budget))
                                      : fmt::format("peak {} of a budget of {}", to_text(report.memory.peak.device),
                                                    to_text(report.device_budget)));
  if (report.host_budget.value != 0)
    lines.emplace_back("host memory",
                       fmt::format("peak {} of {}; {} in, {} out to the device", to_text(report.memory.peak.host),
                                   to_text(report.host_budget), to_text(moved(Tier::device, Tier::host)),
                                   to_text(moved(Tier::host, Tier::device))));
  const std::string clean = report.memory.dropped_clean > Bytes{}
                                ? fmt::format("; {} left unwritten: it had them", to_text(report.memory.dropped_clean))
                                : "";
  lines.emplace_back("ssd", fmt::format("peak {}; {}, {} read{}", to_text(report.memory.peak.ssd), written_text(report),
                                        to_text(moved(Tier::ssd, Tier::device)), clean));
  if (const auto endurance = endurance_text(report)) lines.emplace_back("", *endurance);
  lines.emplace_back("faults", fmt::format("{}, and {}; some thread waited {:.3f} s for memory", report.memory.faults,
                                           plural(report.memory.first_touches, "first touch", "first touches"),
                                           seconds(report.memory.stall)));
  if (report.unmanaged_peak.value != 0)
    lines.emplace_back("not managed", fmt::format("up to {} that operators used ({})", to_text(report.unmanaged_peak),
                                                  report.gpu ? "CUDA graphs, memory pools, other processes' memory"
                                                             : "numpy, mapped files, shared memory"));
}

// "41 launches waited for memory; 1,200 blocks of 2 MiB mapped or unmapped, 61 us each; 1.2 GiB pinned of 8 GiB"
std::string gpu_text(const RunReport::Gpu& gpu) {
  const GpuFigures& figures = gpu.figures;
  std::string text = fmt::format("{} waited for memory; {} of {} mapped or unmapped",
                                 plural(figures.held_launches, "launch", "launches"),
                                 plural(figures.mappings, "block", "blocks"), to_text(gpu.block_bytes));
  if (figures.mappings > 0) text += fmt::format(", {} each", to_text(Nanos{figures.mapping.value / figures.mappings}));
  text += fmt::format("; {} of host memory pinned of {}", to_text(figures.pinned_peak), to_text(gpu.pinned_budget));
  if (figures.blind_launches > 0)
    text += fmt::format("; {} outside of operators may have touched more than could be seen",
                        plural(figures.blind_launches, "launch", "launches"));
  if (gpu.strict)
    text += fmt::format("; strict: {} checked, one at a time, so times say nothing",
                        plural(figures.checked_launches, "launch was", "launches were"));
  return text;
}

}  // namespace

std::string cuda_version_text(const RunReport::Gpu& gpu) {
  return fmt::format("{}.{}", gpu.cuda_version / 1000, gpu.cuda_version % 1000 / 10);
}

std::string to_table(const RunReport& report) {
  Lines lines;
  std::string title = fmt::format("spillway {}: the script ended with status {} after {:.1f} s", kVersion,
                                  report.exit_status, seconds(report.wall));
  if (!report.made_tensors) {
    title +=
        report.gpu
            ? fmt::format("; it made no tensors with PyTorch on {}{}", report.gpu->device,
                          report.exit_status == 0 ? "; for a script that computes on the CPU give --device cpu" : "")
            : "; it made no tensors with PyTorch that could be managed (programs started without LD_PRELOAD are "
              "not seen)";
  } else {
    if (report.gpu) {
      lines.emplace_back("device", fmt::format("{}, {} (its driver knows CUDA {})", report.gpu->device,
                                               printable(report.gpu->name), cuda_version_text(*report.gpu)));
      lines.emplace_back("policy", report.policy);
    } else {
      lines.emplace_back("policy", fmt::format("{}, eviction path {}", report.policy, to_text(report.eviction_path)));
    }
    add_memory(report, lines);
    if (report.gpu) lines.emplace_back("gpu", gpu_text(*report.gpu));
    lines.emplace_back("iterations", iteration_text(report));
    add_phases(report, lines);
    if (!report.plans.empty()) lines.emplace_back("plan", plan_text(report));
    if (report.no_plan) lines.emplace_back("plan", "none: " + why_no_plan(report));
    for (const CostFigures& cost : report.costs)
      lines.emplace_back(&cost == &report.costs.front() ? "most moved" : "", cost_text(cost));
  }
  if (report.unmanaged_count != 0) lines.emplace_back("unmanaged", unmanaged_text(report));
  if (!report.left_behind.empty())
    lines.emplace_back("ended", "still running after the script: " + printable(report.left_behind));
  if (!report.recorded.empty()) lines.emplace_back("trace", report.recorded);
  if (!report.recorded_plan.empty()) lines.emplace_back("its plan", report.recorded_plan);
  if (!report.journal.empty()) lines.emplace_back("journal", report.journal);
  if (!report.not_recorded.empty())
    lines.emplace_back("trace", report.not_recorded == why_no_plan(report)
                                    ? "none, for the reason that there is no plan"
                                    : "none: " + report.not_recorded);
  for (const std::string& notice : report.notices) lines.emplace_back("note", notice);

  std::string text = title + "\n";
  for (const auto& [what, figures] : lines) text += fmt::format("  {:<14}{}\n", what, figures);
  text += prediction_table(report);
  if (const auto advice = advice_of(report)) text += fmt::format("  {:<14}{}\n", "advice", advice->sentence);
  return text;
}

}  // namespace spillway
