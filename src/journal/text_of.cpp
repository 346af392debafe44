#include "journal/text_of.h"

#include <fmt/format.h>

#include <string_view>
#include <variant>

#include "base/text.h"
#include "memory/pieces.h"

namespace spillway {
namespace {

std::string kernel_name(KernelId kernel) {
  return kernel == kNoKernel ? "a kernel" : fmt::format("kernel {}", kernel.value);
}

std::string text(const Allocated& event) {
  return fmt::format("tensor {} is made in {}", event.tensor.value, text_of(event.blocks));
}
std::string text(const Freed& event) {
  return fmt::format("tensor {} in {} dies", event.tensor.value, text_of(event.blocks));
}
std::string text(const KernelReady& event) {
  std::string line = fmt::format("{} of stream {} {}", kernel_name(event.kernel), event.launch.stream.value,
                                 event.waits ? "is ready" : "has started");
  std::string_view before = ":";
  for (const BlockAccess& access : event.accesses) {
    line += fmt::format("{} {}{} {}", before, access.sparse ? "some of " : "", text_of(access.blocks),
                        access.writes ? "written" : "read");
    before = ",";
  }
  return line;
}
std::string text(const KernelQueued& event) {
  return fmt::format("the kernel of stream {} is queued", event.launch.stream.value);
}
std::string text(const KernelDone& event) {
  return fmt::format("the kernel of stream {} has ended", event.launch.stream.value);
}
std::string text(const Adopted& event) {
  if (event.plan == nullptr) return "no plan is followed any more";
  const Plan& commands = event.plan->commands;
  return fmt::format("a plan of {} is taken up: {} kernels, {} evictions, {} prefetches",
                     commands.policy.empty() ? "no name" : commands.policy, event.plan->kernels,
                     commands.evictions.size(), commands.prefetches.size());
}
std::string text(const Faulted& event) {
  if (event.stream == kNobody)
    return fmt::format("{} is held by a launch: it is needed, or could not be dropped", text_of(event.blocks));
  return fmt::format("stream {} faults on {}{}", event.stream.value, text_of(event.blocks),
                     event.anew ? ", for another launch" : "");
}
std::string text(const Touched& event) { return fmt::format("{} is touched", text_of({event.block, 1})); }
std::string text(const Elapsed& event) { return fmt::format("timer {} is over", event.timer); }
std::string text(const MoveDone& event) { return fmt::format("move {} is done", event.move.value); }
std::string text(const MoveFailed& event) {
  return fmt::format("move {} {}", event.move.value, event.cancelled ? "was cancelled" : "has failed");
}

std::string_view urgency_name(Urgency urgency) {
  switch (urgency) {
    case Urgency::fault:
      return "a fault";
    case Urgency::need:
      return "a kernel that waits";
    case Urgency::plan:
      return "what is planned";
  }
  return "?";
}

std::string text(const Launch& command) {
  return fmt::format("launch the kernel of stream {}", command.launch.stream.value);
}
std::string text(const Move& command) {
  const std::string_view copy = command.to == Tier::device ? ", keeping the copy" : ", clean";
  return fmt::format("move {}: {} from {} to {}{}, for {}{}", command.id.value, text_of(command.blocks),
                     to_text(command.from), to_text(command.to), command.clean ? copy : "",
                     urgency_name(command.urgency), command.first_chunk ? "" : ", continued");
}
std::string text(const Populate& command) { return fmt::format("map empty {}", text_of(command.blocks)); }
std::string text(const Discard& command) {
  return fmt::format("drop {} on {}", text_of(command.blocks), to_text(command.tier));
}
std::string text(const Split& command) { return fmt::format("split {} into pieces", text_of({command.block, 1})); }
std::string text(const Park& command) { return fmt::format("park {}", text_of({command.block, 1})); }
std::string text(const Timer& command) {
  return fmt::format("tell in {} that timer {} is over", to_text(command.delay), command.timer);
}
std::string text(const Join& command) { return fmt::format("make {} whole again", text_of({command.block, 1})); }
std::string text(const Cancel& command) { return fmt::format("cancel move {}", command.move.value); }

}  // namespace

std::string text_of(BlockRange blocks) {
  if (blocks.count > 0 && is_piece(blocks.first)) {
    const std::uint32_t first = place_in_block(blocks.first);
    return fmt::format(
        "{} {} of block {}", blocks.count == 1 ? "piece" : "pieces",
        blocks.count == 1 ? std::to_string(first) : fmt::format("{}-{}", first, first + blocks.count - 1),
        block_of(blocks.first).value);
  }
  if (blocks.count == 1) return fmt::format("block {}", blocks.first.value);
  if (blocks.count == 0) return "no block";
  return fmt::format("blocks {}-{}", blocks.first.value, blocks.end().value - 1);
}

std::string text_of(const Event& event) {
  return std::visit([](const auto& what) { return text(what); }, event);
}

std::string text_of(const Command& command) {
  return std::visit([](const auto& what) { return text(what); }, command);
}

std::string text_of(const Failure& failure) {
  switch (failure.kind) {
    case Failure::Kind::no_room:
      return fmt::format("give up: {} must leave the device and no other tier takes them", to_text(failure.bytes));
    case Failure::Kind::device_too_small:
      return fmt::format("give up: the device is {} too small", to_text(failure.bytes));
    case Failure::Kind::unreadable:
      return fmt::format("give up: {} cannot be read back", to_text(failure.bytes));
  }
  return "give up";
}

}  // namespace spillway
