#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/check.h"
#include "machines/cpu/block_mapper.h"
#include "machines/cpu/drop_pages.h"
#include "memory/pieces.h"

namespace spillway {
namespace {

using std::chrono::microseconds;

// A page that the kernel holds for long (a tensor in direct I/O by the script, say) is no good victim; one that must
// come back has nowhere else to go.
constexpr microseconds kVictimPatience{300};
constexpr microseconds kReturnPatience{10'000'000};

// Slots for frames of one size. A slot either holds a frame or is empty, and there are as many as frames can be: so a
// frame that leaves a block always finds an empty one.
class FrameSlots {
 public:
  FrameSlots(std::byte* begin, std::byte* end, std::size_t bytes) : bytes_(bytes) {
    for (; end != begin; end -= bytes) empty_.push_back(end - bytes);
  }

  std::size_t bytes() const { return bytes_; }
  bool has_free() const { return !free_.empty(); }

  std::byte* take() {
    std::byte* frame = free_.back();
    free_.pop_back();
    return frame;
  }
  std::byte* make() {
    CHECK(!empty_.empty());
    std::byte* frame = empty_.back();
    if (::madvise(frame, bytes_, MADV_POPULATE_WRITE) != 0) return nullptr;
    empty_.pop_back();
    return frame;
  }
  void drop() {
    std::byte* frame = take();
    drop_pages(frame, bytes_);
    empty_.push_back(frame);
  }
  std::byte* empty() const {
    CHECK(!empty_.empty());
    return empty_.back();
  }
  void filled() { empty_.pop_back(); }  // what empty() gave
  void frame_is_free(std::byte* slot) { free_.push_back(slot); }
  void frame_has_left(std::byte* slot) { empty_.push_back(slot); }

 private:
  std::size_t bytes_;
  std::vector<std::byte*> free_;  // slots whose frame is free; the last one used first, for the caches
  std::vector<std::byte*> empty_;
};

// Frames move between the managed range and slots. They are given back to the kernel only where those of one size are
// free and others are wanted: fresh memory costs milliseconds a block, moving it microseconds.
class MovingMapper final : public BlockMapper {
 public:
  // The second half of `staging` is for pieces.
  MovingMapper(Userfault& userfault, MemoryRange staging, std::uint32_t device_frames, std::uint32_t host_frames)
      : userfault_(userfault),
        staging_(std::move(staging)),
        device_frames_(device_frames),
        most_(kBlockBytes * (device_frames + host_frames)),
        blocks_(staging_.begin(), staging_.block(staging_.blocks() / 2), kBlockBytes.value),
        pieces_(staging_.block(staging_.blocks() / 2), staging_.end(), kPieceBytes.value) {}

  std::uint32_t device_blocks() const override { return device_frames_; }

  int populate(std::byte* block, std::size_t bytes) override {
    std::byte* frame = take_frame(bytes);
    if (frame == nullptr) return ENOMEM;
    const int error = userfault_.move(block, frame, bytes, kReturnPatience);
    error == 0 ? slots(bytes).frame_has_left(frame) : slots(bytes).frame_is_free(frame);
    return error;
  }

  int take_off(std::byte* block, std::size_t bytes, std::byte*& buffer, bool& came_back) override {
    FrameSlots& own = slots(bytes);
    const int error = userfault_.move(own.empty(), block, bytes, kVictimPatience, &came_back);
    if (error != 0) return error;
    buffer = own.empty();
    own.filled();
    return 0;
  }

  int put_back(std::byte* block, std::size_t bytes, std::byte* buffer) override {
    return fill(block, bytes, buffer, true);
  }
  void let_go(std::byte*, std::size_t bytes, std::byte* buffer) override { slots(bytes).frame_is_free(buffer); }

  std::byte* arrival_buffer(std::size_t bytes) override { return take_frame(bytes); }
  std::uint32_t arrival_buffers(Urgency, std::size_t) const override { return UINT32_MAX; }  // The frames themselves.

  int map(std::byte* block, std::size_t bytes, std::byte* buffer) override { return fill(block, bytes, buffer, false); }
  void free_buffer(std::size_t bytes, std::byte* buffer) override { slots(bytes).frame_is_free(buffer); }

  // Nothing is copied: the frame changes its budget. Free ones belong to whichever has room.
  std::byte* keep_in_host(std::byte*, std::byte* buffer) override { return buffer; }
  int map_from_host(std::byte* block, std::byte* host) override { return fill(block, kBlockBytes.value, host, true); }
  void free_host_frame(std::byte* host) override { blocks_.frame_is_free(host); }

  // Where pieces were, the kernel has a table of small pages, and would break the next frame that comes into such.
  void is_whole(std::byte* block) override { drop_pages(block, kBlockBytes.value); }

  Bytes held_for_device(Bytes, Bytes host_in_use) const override {
    CHECK(host_in_use <= made_ && made_ <= most_);
    return std::min(kBlockBytes * device_frames_, made_ - host_in_use);
  }
  const MemoryRange& staging() const override { return staging_; }

 private:
  FrameSlots& slots(std::size_t bytes) { return bytes == kBlockBytes.value ? blocks_ : pieces_; }

  int fill(std::byte* block, std::size_t bytes, std::byte* frame, bool may_have_holes) {
    const int error = userfault_.move(block, frame, bytes, kReturnPatience, nullptr, may_have_holes);
    if (error == 0) slots(bytes).frame_has_left(frame);
    return error;
  }

  std::byte* take_frame(std::size_t bytes) {
    FrameSlots& own = slots(bytes);
    if (own.has_free()) return own.take();
    FrameSlots& others = &own == &blocks_ ? pieces_ : blocks_;
    for (; made_ + Bytes{bytes} > most_; made_ -= Bytes{others.bytes()}) {
      CHECK(others.has_free());  // Who asks has counted what is in use.
      others.drop();
    }
    std::byte* frame = own.make();
    if (frame != nullptr) made_ += Bytes{bytes};
    return frame;
  }

  Userfault& userfault_;
  MemoryRange staging_;
  std::uint32_t device_frames_;
  Bytes most_, made_;
  FrameSlots blocks_, pieces_;
};

}  // namespace

Result<std::unique_ptr<BlockMapper>> make_moving_mapper(Userfault& userfault, std::uint32_t device_frames,
                                                        std::uint32_t host_frames) {
  const std::uint32_t frames = device_frames + host_frames;
  TRY(MemoryRange staging, MemoryRange::reserve(2 * frames));
  // A first touch there would make a whole huge page.
  ::madvise(staging.block(frames), frames * kBlockBytes.value, MADV_NOHUGEPAGE);
  TRY_VOID(userfault.admit(staging.begin(), staging.bytes()));
  return std::make_unique<MovingMapper>(userfault, std::move(staging), device_frames, host_frames);
}

}  // namespace spillway
