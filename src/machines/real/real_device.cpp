#include "machines/real/real_device.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "base/files.h"
#include "base/text.h"

namespace spillway {
namespace {

// Blocks that are never promised: a block on its way counts on two tiers, and something must be able to move.
constexpr std::uint32_t kSlackBlocks = 16;

}  // namespace

Result<std::unique_ptr<SpillFile>> RealDevice::open_file(const RealDeviceConfig& config) {
  const DiskWait wait(config.disk_waits, WaitsFor::space);
  TRY(SpillFile opened, SpillFile::open(config.ssd_directory, config.ssd_capacity, config.block_bytes));
  return std::make_unique<SpillFile>(std::move(opened));
}

// Where it cannot be had nobody waits for it.
std::optional<UniqueFd> RealDevice::open_teardown(const std::string& path) {
  const int fd = path.empty() ? -1 : ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  return UniqueFd(fd);
}

PageTable RealDevice::empty_table() const {
  const Bytes block = budgets_.block_bytes;
  PageTable table({block * machine().device_blocks(), block * host_blocks(), file_->capacity()});
  table.add_blocks(machine().blocks(), block);
  return table;
}

std::string RealDevice::explain(const Failure& failure) const {
  const int error = machine().stats().last_transfer_error();
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
                         to_text(failure.bytes), cause, to_text(budgets_.device), to_text(budgets_.host),
                         to_text(file_->capacity()), budgets_.ssd_directory);
    case Failure::Kind::device_too_small:
      return fmt::format(
          "device memory {} is {} too small for what has to be there at a time; give more with "
          "--device-memory",
          to_text(budgets_.device), to_text(failure.bytes));
    case Failure::Kind::unreadable:
      return fmt::format(
          "{} cannot be read back from {}{}; the tensors in them are lost. Check the device's health, or "
          "name another directory with --ssd",
          to_text(failure.bytes), budgets_.ssd_directory, cause);
  }
  return "unknown failure";
}

// So that these blocks can be stored.
std::uint64_t RealDevice::slots_needed(std::uint64_t blocks) const {
  const std::uint64_t in_memory = machine().device_blocks() + host_blocks() - machine().host_blocks_missing();
  const std::uint64_t needed = blocks + kSlackBlocks;
  return needed <= in_memory ? 0 : needed - in_memory;
}

// Nothing is granted that could not be stored: what memory cannot hold has its space on the SSD.
Result<> RealDevice::promise(std::uint64_t blocks) {
  const std::uint64_t slots = slots_needed(blocks) + slots_of_others();
  if (slots <= file_->reserved_slots()) return {};
  if (slots > file_->capacity_slots()) return fail(Errc::out_of_memory, "");
  const DiskWait wait(budgets_.disk_waits, WaitsFor::space);
  return file_->reserve(static_cast<std::uint32_t>(slots));
}

// What is clean has a slot while it is on the device. Copies give way where that is not had.
void RealDevice::promise_copies(std::uint64_t blocks) {
  const DiskWait wait(budgets_.disk_waits, WaitsFor::space);
  file_->reserve_if_plenty(static_cast<std::uint32_t>(blocks + kSlackBlocks + slots_of_others()));
}

std::unexpected<Error> RealDevice::no_room(Bytes wanted, Tensors already, std::string_view reason) const {
  std::string text = fmt::format("no room for {}: tensors take {} already", to_text(wanted), to_text(already.bytes));
  // What small tensors leave of their blocks when they die serves small ones only.
  const Bytes blocks = budgets_.block_bytes * already.blocks;
  if (blocks > already.bytes)
    text += fmt::format(" in {} of blocks of {}", to_text(blocks), to_text(budgets_.block_bytes));
  text += fmt::format("; device memory {}, host memory {}, ssd {} in {}; of all that {} stay free for moves",
                      to_text(budgets_.device), to_text(budgets_.host), to_text(file_->capacity()),
                      budgets_.ssd_directory, to_text(budgets_.block_bytes * kSlackBlocks));
  text += kept_for_others();
  text += "; ";
  text += reason.empty() ? file_->remedy() : reason;
  return fail(Errc::out_of_memory, std::move(text));
}

}  // namespace spillway
