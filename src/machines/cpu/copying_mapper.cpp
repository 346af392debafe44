#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/check.h"
#include "machines/cpu/block_mapper.h"
#include "machines/cpu/copy_block.h"
#include "machines/cpu/drop_pages.h"

namespace spillway {
namespace {

// Blocks leave from where they are, write-protected, and arrive through a few staging buffers, which are part of the
// device's budget. The kernel makes a block's frame when it is mapped and takes it back when it is dropped.
class CopyingMapper final : public BlockMapper {
 public:
  CopyingMapper(Userfault& userfault, MemoryRange buffers, MemoryRange zeroes, std::uint32_t device_frames,
                std::uint32_t arrivals)
      : userfault_(userfault),
        buffers_(std::move(buffers)),
        zeroes_(std::move(zeroes)),
        device_frames_(device_frames),
        arrivals_(arrivals),
        for_pieces_(arrivals) {
    // Only ever read, so it stays the kernel's one page of zeroes and takes no memory.
    ::madvise(zeroes_.begin(), zeroes_.bytes(), MADV_NOHUGEPAGE);
    ::mprotect(zeroes_.begin(), zeroes_.bytes(), PROT_READ);
    for (std::uint32_t index = buffers_.blocks(); index > 0; --index)
      (index > arrivals ? host_ : free_).push_back(buffers_.block(index - 1));
  }

  std::uint32_t device_blocks() const override { return device_frames_ - arrivals_; }

  int populate(std::byte* block, std::size_t bytes) override { return userfault_.copy(block, zeroes_.begin(), bytes); }

  int take_off(std::byte* block, std::size_t bytes, std::byte*& buffer, bool&) override {
    const int error = userfault_.protect(block, bytes, true);
    if (error == 0) buffer = block;
    return error;
  }
  int put_back(std::byte* block, std::size_t bytes, std::byte*) override {
    return userfault_.protect(block, bytes, false);
  }
  void let_go(std::byte* block, std::size_t bytes, std::byte*) override {
    drop_pages(block, bytes);
    userfault_.wake(block, bytes);  // Whoever waits to write finds the block absent now and faults again.
  }

  // Pieces share a buffer of a block's size.
  std::byte* arrival_buffer(std::size_t bytes) override {
    if (bytes == kBlockBytes.value) return take(free_);
    if (free_pieces_.empty()) {
      std::byte* const buffer = take(free_);
      if (buffer == nullptr) return nullptr;
      for (std::size_t at = kBlockBytes.value; at > 0; at -= bytes) free_pieces_.push_back(buffer + at - bytes);
    }
    std::byte* const piece = take(free_pieces_);
    ++for_pieces_[buffers_.index_of(piece)];
    return piece;
  }
  // Half of them are kept from planned arrivals, which share the others: so the disk reads one while another is mapped.
  std::uint32_t arrival_buffers(Urgency urgency, std::size_t bytes) const override {
    const auto free = static_cast<std::uint32_t>(free_.size());
    CHECK(free <= arrivals_);
    const auto in_each = static_cast<std::uint32_t>(kBlockBytes.value / bytes);
    if (urgency != Urgency::plan)
      return free * in_each + (in_each > 1 ? static_cast<std::uint32_t>(free_pieces_.size()) : 0);
    const std::uint32_t kept = arrivals_ / 2;
    return free > kept ? std::min(free - kept, (arrivals_ - kept + 1) / 2) * in_each : 0;
  }
  int map(std::byte* block, std::size_t bytes, std::byte* buffer) override {
    const int error = userfault_.copy(block, buffer, bytes);
    if (error == 0) free_buffer(bytes, buffer);
    return error;
  }
  void free_buffer(std::size_t bytes, std::byte* buffer) override {
    if (bytes == kBlockBytes.value) return free_.push_back(buffer);
    const std::uint32_t whole = buffers_.index_of(buffer);
    free_pieces_.push_back(buffer);
    if (--for_pieces_[whole] > 0) return;
    std::erase_if(free_pieces_, [&](const std::byte* piece) { return buffers_.index_of(piece) == whole; });
    free_.push_back(buffers_.block(whole));
  }

  std::byte* keep_in_host(std::byte* block, std::byte* buffer) override {
    std::byte* host = take(host_);
    if (host == nullptr) return nullptr;
    copy_block(host, buffer, kBlockBytes.value);
    let_go(block, kBlockBytes.value, buffer);
    return host;
  }
  int map_from_host(std::byte* block, std::byte* host) override {
    const int error = userfault_.copy(block, host, kBlockBytes.value);
    if (error == 0) host_.push_back(host);
    return error;
  }
  void free_host_frame(std::byte* host) override { host_.push_back(host); }

  void is_whole(std::byte*) override {}

  Bytes held_for_device(Bytes device_in_use, Bytes) const override { return device_in_use + kBlockBytes * arrivals_; }
  const MemoryRange& staging() const override { return buffers_; }

 private:
  static std::byte* take(std::vector<std::byte*>& from) {
    if (from.empty()) return nullptr;
    std::byte* buffer = from.back();
    from.pop_back();
    return buffer;
  }

  Userfault& userfault_;
  MemoryRange buffers_, zeroes_;
  std::uint32_t device_frames_;
  std::uint32_t arrivals_;  // how many of the buffers, from the first, are for arrivals
  std::vector<std::byte*> free_, host_;
  std::vector<std::uint32_t> for_pieces_;  // by buffer: so many pieces hold parts of it
  std::vector<std::byte*> free_pieces_;    // the other parts of these buffers
};

}  // namespace

Result<std::unique_ptr<BlockMapper>> make_copying_mapper(Userfault& userfault, std::uint32_t device_frames,
                                                         std::uint32_t host_frames) {
  const std::uint32_t arrivals = std::clamp(device_frames / 8, 1u, 8u);
  CHECK(device_frames > arrivals);
  TRY(MemoryRange buffers, MemoryRange::reserve(arrivals + host_frames));
  TRY(MemoryRange zeroes, MemoryRange::reserve(1));
  return std::make_unique<CopyingMapper>(userfault, std::move(buffers), std::move(zeroes), device_frames, arrivals);
}

}  // namespace spillway
