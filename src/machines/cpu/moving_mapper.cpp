#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/check.h"
#include "machines/cpu/block_mapper.h"

namespace spillway {
namespace {

using std::chrono::microseconds;

// A page that the kernel holds for long (a tensor in direct I/O by the script, say) is no good victim; one that must
// come back has nowhere else to go.
constexpr microseconds kVictimPatience{300};
constexpr microseconds kReturnPatience{10'000'000};

// Frames move between the managed range and staging slots. A slot either holds a frame or is empty; there are as many
// slots as frames can be, so a frame that leaves a block always finds an empty one. Frames are never given back to the
// kernel: fresh memory costs milliseconds a block, moving it microseconds.
class MovingMapper final : public BlockMapper {
 public:
  MovingMapper(Userfault& userfault, MemoryRange staging, std::uint32_t device_frames, std::uint32_t host_frames)
      : userfault_(userfault), staging_(std::move(staging)), device_frames_(device_frames), host_frames_(host_frames) {
    for (std::uint32_t slot = staging_.blocks(); slot > 0; --slot) empty_.push_back(staging_.block(slot - 1));
  }

  std::uint32_t device_blocks() const override { return device_frames_; }

  int populate(std::byte* block) override {
    std::byte* frame = take_frame();
    if (frame == nullptr) return ENOMEM;
    const int error = userfault_.move(block, frame, kBlockBytes.value, kReturnPatience);
    (error == 0 ? empty_ : pool_).push_back(frame);
    return error;
  }

  int take_off(std::byte* block, std::byte*& buffer, bool& came_back) override {
    CHECK(!empty_.empty());
    const int error = userfault_.move(empty_.back(), block, kBlockBytes.value, kVictimPatience, &came_back);
    if (error != 0) return error;
    buffer = empty_.back();
    empty_.pop_back();
    return 0;
  }

  int put_back(std::byte* block, std::byte* buffer) override { return fill(block, buffer, true); }
  void let_go(std::byte*, std::byte* buffer) override { pool_.push_back(buffer); }

  std::byte* arrival_buffer() override { return take_frame(); }
  std::uint32_t arrival_buffers(Urgency) const override { return device_frames_; }  // The frames themselves.

  int map(std::byte* block, std::byte* buffer) override { return fill(block, buffer, false); }
  void free_buffer(std::byte* buffer) override { pool_.push_back(buffer); }

  // Nothing is copied: the frame changes its budget. Free ones belong to whichever has room.
  std::byte* keep_in_host(std::byte*, std::byte* buffer) override { return buffer; }
  int map_from_host(std::byte* block, std::byte* host) override { return fill(block, host, true); }
  void free_host_frame(std::byte* host) override { pool_.push_back(host); }

  std::uint32_t held_for_device(std::uint32_t, std::uint32_t host_in_use) const override {
    CHECK(host_in_use <= made_ && made_ <= device_frames_ + host_frames_);
    return std::min(device_frames_, made_ - host_in_use);
  }
  const MemoryRange& staging() const override { return staging_; }

 private:
  int fill(std::byte* block, std::byte* frame, bool may_have_holes) {
    const int error = userfault_.move(block, frame, kBlockBytes.value, kReturnPatience, nullptr, may_have_holes);
    if (error == 0) empty_.push_back(frame);
    return error;
  }

  std::byte* take_frame() {
    if (!pool_.empty()) {
      std::byte* frame = pool_.back();
      pool_.pop_back();
      return frame;
    }
    CHECK(made_ < device_frames_ + host_frames_ && !empty_.empty());
    std::byte* frame = empty_.back();
    if (::madvise(frame, kBlockBytes.value, MADV_POPULATE_WRITE) != 0) return nullptr;
    empty_.pop_back();
    ++made_;
    return frame;
  }

  Userfault& userfault_;
  MemoryRange staging_;
  std::uint32_t device_frames_, host_frames_;
  std::uint32_t made_ = 0;
  std::vector<std::byte*> pool_;   // slots whose frame is free; the last one used first, for the caches
  std::vector<std::byte*> empty_;  // slots without a frame
};

}  // namespace

Result<std::unique_ptr<BlockMapper>> make_moving_mapper(Userfault& userfault, std::uint32_t device_frames,
                                                        std::uint32_t host_frames) {
  TRY(MemoryRange staging, MemoryRange::reserve(device_frames + host_frames));
  TRY_VOID(userfault.admit(staging.begin(), staging.bytes()));
  return std::make_unique<MovingMapper>(userfault, std::move(staging), device_frames, host_frames);
}

}  // namespace spillway
