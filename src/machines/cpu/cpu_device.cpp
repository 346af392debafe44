#include "machines/cpu/cpu_device.h"

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
#include "machines/real/ring.h"

namespace spillway {
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
  return Found{.method = method, .ssd = file.capacity()};
}

Result<std::unique_ptr<CpuDevice>> CpuDevice::open(CpuDeviceConfig config) {
  CHECK(config.block_bytes == kBlockBytes);  // Its blocks have pieces.
  TRY(const FrameCounts frames, frames_for(config.device, config.host, config.check_least_budget));
  TRY(const EvictionMethod method, choose(config.method));
  TRY(auto file, open_file(config));
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
  abandon_file();
}

std::string CpuDevice::kept_for_others() const {
  if (slots_for_children_ == 0) return {};
  return fmt::format(" and {} are kept for forked processes (fewer workers need less)",
                     to_text(kBlockBytes * slots_for_children_));
}

std::uint32_t CpuDevice::slots_of_others() {
  forget_ended_children();
  return slots_for_children_;
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
  const std::uint64_t own = slots_needed(blocks_of_tensors), all = file().capacity_slots();
  const std::uint64_t rest = own < all ? all - own : 0;
  // What has been promised already stands.
  const std::uint64_t promised = slots <= rest ? slots : std::max<std::uint64_t>(rest / 2, slots_for_children_);
  const DiskWait wait(config_.disk_waits, WaitsFor::space);
  if (own + promised <= all && file().reserve(static_cast<std::uint32_t>(own + promised)))
    slots_for_children_ = static_cast<std::uint32_t>(promised);
  machine_->children().allow(slots_for_children_);
}

}  // namespace spillway
