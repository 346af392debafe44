#include "machines/cpu/cpu_device.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/text.h"
#include "machines/cpu/budgets.h"
#include "machines/cpu/choose_eviction.h"
#include "machines/cpu/ring.h"

namespace spillway {
namespace {

// Blocks that are never promised: a block on its way counts on two tiers, and something must be able to move.
constexpr std::uint32_t kSlackBlocks = 16;

// Where it cannot be had nobody waits for it.
std::optional<UniqueFd> open_teardown(const std::string& path) {
  const int fd = path.empty() ? -1 : ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  return UniqueFd(fd);
}

}  // namespace

Result<CpuDevice::Found> CpuDevice::check(const CpuDeviceConfig& config) {
  TRY(const FrameCounts frames, frames_for(config.device, config.host, config.check_least_budget));
  TRY(SpillFile file, SpillFile::open(config.ssd_directory, config.ssd_capacity));
  TRY(const EvictionMethod method, choose(config.method));
  TRY_VOID(file.reserve(1));
  TRY(const Doorbell bell, Doorbell::make());
  TRY(const auto ring, Ring::open(file.fd(), bell));
  TRY(const MemoryRange range, MemoryRange::reserve(range_blocks(frames, file.capacity_slots())));
  for (const bool write : {true, false}) {
    ring->start({.id = 0, .write = write, .memory = range.begin(), .offset = 0});
    std::vector<Completion> ended;
    while (ended.empty()) TRY_VOID(ring->wait(ended, std::nullopt));
    if (const int error = ended.front().error; error != 0)
      return fail(Errc::io, fmt::format("cannot spill to {}: a trial block cannot be {}: {}; name another directory "
                                        "with --ssd",
                                        config.ssd_directory, write ? "written" : "read back", errno_text(error)));
  }
  return Found{.method = method, .ssd = kBlockBytes * file.capacity_slots()};
}

Result<std::unique_ptr<CpuDevice>> CpuDevice::open(CpuDeviceConfig config) {
  TRY(const FrameCounts frames, frames_for(config.device, config.host, config.check_least_budget));
  TRY(const EvictionMethod method, choose(config.method));
  std::unique_ptr<SpillFile> file;
  {
    const DiskWait wait(config.disk_waits, WaitsFor::space);
    TRY(SpillFile opened, SpillFile::open(config.ssd_directory, config.ssd_capacity));
    file = std::make_unique<SpillFile>(std::move(opened));
  }
  const auto teardown = open_teardown(config.teardown_path);
  TRY(auto machine, CpuMachine::make({.device_frames = frames.device,
                                      .host_frames = frames.host,
                                      .range_blocks = range_blocks(frames, file->capacity_slots()),
                                      .method = method,
                                      .closed_after_file = teardown ? teardown->get() : -1,
                                      .patience = config.patience,
                                      .on_failure = config.on_failure,
                                      .on_child_ended = config.on_child_ended,
                                      .around_io = config.around_io},
                                     *file));
  return std::unique_ptr<CpuDevice>(new CpuDevice(std::move(config), method, std::move(file), std::move(machine)));
}

void CpuDevice::abandon() {
  static_cast<void>(machine_.release());
  static_cast<void>(file_.release());
}

PageTable CpuDevice::empty_table() const {
  PageTable table({kBlockBytes * machine_->device_blocks(), kBlockBytes * (config_.host.value / kBlockBytes.value),
                   kBlockBytes * file_->capacity_slots()});
  table.add_blocks(machine_->range().blocks(), kBlockBytes);
  return table;
}

std::string CpuDevice::explain(const Failure& failure) const {
  const int error = machine_->stats().last_transfer_error();
  const std::string_view remedy =
      error == EFBIG   ? "; the script has lowered its limit on file sizes (ulimit -f)"
      : error == EROFS ? "; the file system there takes no more writes, as after an error of its disk: see dmesg, or "
                         "name another directory with --ssd"
                       : "";
  const std::string cause =
      error == 0 ? "" : fmt::format(" (the last transfer that failed: {}{})", errno_text(error), remedy);
  switch (failure.kind) {
    case Failure::Kind::no_room:
      return fmt::format("{} must leave the device and no other tier takes them{}: device {}, host {}, ssd {} in {}",
                         to_text(failure.bytes), cause, to_text(config_.device), to_text(config_.host),
                         to_text(kBlockBytes * file_->capacity_slots()), config_.ssd_directory);
    case Failure::Kind::device_too_small:
      return fmt::format(
          "device memory {} is {} too small for what has to be there at a time; give more with "
          "--device-memory",
          to_text(config_.device), to_text(failure.bytes));
    case Failure::Kind::unreadable:
      return fmt::format(
          "{} cannot be read back from {}{}; the tensors in them are lost. Check the device's health, or "
          "name another directory with --ssd",
          to_text(failure.bytes), config_.ssd_directory, cause);
  }
  return "unknown failure";
}

// So that these blocks can be stored.
std::uint64_t CpuDevice::slots_needed(std::uint64_t blocks) const {
  const std::uint64_t in_memory = machine_->device_blocks() + config_.host.value / kBlockBytes.value;
  const std::uint64_t needed = blocks + kSlackBlocks;
  return needed <= in_memory ? 0 : needed - in_memory;
}

bool CpuDevice::could_store(std::uint64_t blocks) const { return slots_needed(blocks) <= file_->capacity_slots(); }

// Nothing is granted that could not be stored: what memory cannot hold has its space on the SSD.
Result<> CpuDevice::promise(std::uint64_t blocks) {
  forget_ended_children();
  const std::uint64_t slots = slots_needed(blocks) + slots_for_children_;
  if (slots <= file_->reserved_slots()) return {};
  if (slots > file_->capacity_slots()) return fail(Errc::out_of_memory, "");
  const DiskWait wait(config_.disk_waits, WaitsFor::space);
  return file_->reserve(static_cast<std::uint32_t>(slots));
}

// What is clean has a slot while it is on the device. Copies give way where that is not had.
void CpuDevice::promise_copies(std::uint64_t blocks) {
  forget_ended_children();
  const DiskWait wait(config_.disk_waits, WaitsFor::space);
  file_->reserve_if_plenty(static_cast<std::uint32_t>(blocks + kSlackBlocks + slots_for_children_));
}

std::unexpected<Error> CpuDevice::no_room(Bytes wanted, Tensors already, std::string_view reason) const {
  std::string text = fmt::format("no room for {}: tensors take {} already", to_text(wanted), to_text(already.bytes));
  // What small tensors leave of their blocks when they die serves small ones only.
  const Bytes blocks = kBlockBytes * already.blocks;
  if (blocks > already.bytes) text += fmt::format(" in {} of blocks of {}", to_text(blocks), to_text(kBlockBytes));
  text += fmt::format("; device memory {}, host memory {}, ssd {} in {}; of all that {} stay free for moves",
                      to_text(config_.device), to_text(config_.host), to_text(kBlockBytes * file_->capacity_slots()),
                      config_.ssd_directory, to_text(kBlockBytes * kSlackBlocks));
  if (slots_for_children_ != 0)
    text += fmt::format(" and {} are kept for forked processes (fewer workers need less)",
                        to_text(kBlockBytes * slots_for_children_));
  text += "; ";
  text += reason.empty() ? file_->remedy() : reason;
  return fail(Errc::out_of_memory, std::move(text));
}

void CpuDevice::forget_ended_children() {
  if (!machine_->children().is_serving()) slots_for_children_ = 0;
}

std::optional<CpuDevice::Fork> CpuDevice::begin_fork() {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
  UniqueFd ours = out_of_reach(UniqueFd(ends[0])), theirs = out_of_reach(UniqueFd(ends[1]));
  // Two more will come from the child.
  for (const int spare : {::dup(ours.get()), ::dup(ours.get())})
    if (spare < 0 || ::close(spare) != 0) return std::nullopt;
  const auto slots = machine_->children().begin_fork(std::move(ours));
  if (!slots) return std::nullopt;
  return Fork{std::move(theirs), *slots};
}

// The children are promised space for all that they could ask for, since what is kept for them must not take the place
// of tensors; half of what there is where that is too little, and the script needs the other half.
void CpuDevice::promise_children(std::uint32_t slots, std::uint64_t blocks_of_tensors) {
  forget_ended_children();
  const std::uint64_t own = slots_needed(blocks_of_tensors), all = file_->capacity_slots();
  const std::uint64_t rest = own < all ? all - own : 0;
  // What has been promised already stands.
  const std::uint64_t promised = slots <= rest ? slots : std::max<std::uint64_t>(rest / 2, slots_for_children_);
  const DiskWait wait(config_.disk_waits, WaitsFor::space);
  if (own + promised <= all && file_->reserve(static_cast<std::uint32_t>(own + promised)))
    slots_for_children_ = static_cast<std::uint32_t>(promised);
  machine_->children().allow(slots_for_children_);
}

}  // namespace spillway
