#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "executor/machine.h"
#include "machines/cpu/userfault.h"
#include "machines/real/memory_range.h"

namespace spillway {

// How a block's bytes, or those of a piece, get out of the managed range and back. Frames are memory of one block or
// one piece each, `bytes`; how many bytes they have together is fixed by the two budgets, and whatever holds one
// counts, wherever it is. Calls return 0 or an errno, and wake nobody who waits for a block but where it says so; used
// by the run loop only.
class BlockMapper {
 public:
  virtual ~BlockMapper() = default;

  // How many blocks may be mapped or in flight at a time. The rest of the device's budget, if any, is the mapper's own.
  virtual std::uint32_t device_blocks() const = 0;

  // Maps a frame without contents.
  virtual int populate(std::byte* block, std::size_t bytes) = 0;

  // From now on nobody can change the block's bytes; they are to be read at `buffer` until put_back() or let_go().
  // `came_back`: whether some of the block's pages had been away, came back, and lost their write protection so; it may
  // have succeeded after that.
  virtual int take_off(std::byte* block, std::size_t bytes, std::byte*& buffer, bool& came_back) = 0;
  // Undoes take_off(); no write is lost.
  virtual int put_back(std::byte* block, std::size_t bytes, std::byte* buffer) = 0;
  // The bytes are safe elsewhere or not wanted any more: the frame is free. Whoever waits to write faults again.
  virtual void let_go(std::byte* block, std::size_t bytes, std::byte* buffer) = 0;

  // Memory to read a block into; null if there is none.
  virtual std::byte* arrival_buffer(std::size_t bytes) = 0;
  // How many of these an arrival may have now, if there is room on the device for its blocks.
  virtual std::uint32_t arrival_buffers(Urgency urgency, std::size_t bytes) const = 0;
  // Gives the buffer's contents to the block, and takes the buffer back.
  virtual int map(std::byte* block, std::size_t bytes, std::byte* buffer) = 0;
  virtual void free_buffer(std::size_t bytes, std::byte* buffer) = 0;

  // The host tier, of whole blocks: after take_off(), keeps the bytes in a host frame instead; null if there is none.
  virtual std::byte* keep_in_host(std::byte* block, std::byte* buffer) = 0;
  virtual int map_from_host(std::byte* block, std::byte* host) = 0;
  virtual void free_host_frame(std::byte* host) = 0;

  // The block was in pieces, none of which is mapped any more.
  virtual void is_whole(std::byte* block) = 0;

  // Bytes held for the device when so many are in use by it and so many by the host: frames kept for reuse count, too.
  virtual Bytes held_for_device(Bytes device_in_use, Bytes host_in_use) const = 0;
  // Memory besides the managed range in which frames may be.
  virtual const MemoryRange& staging() const = 0;
};

// UFFDIO_MOVE: the page itself goes from the block to a staging slot and back. No copy; frames are made once and
// reused.
Result<std::unique_ptr<BlockMapper>> make_moving_mapper(Userfault& userfault, std::uint32_t device_frames,
                                                        std::uint32_t host_frames);
// For kernels before 6.8: the block is write-protected while its bytes are copied, then dropped; it comes back as a
// copy.
Result<std::unique_ptr<BlockMapper>> make_copying_mapper(Userfault& userfault, std::uint32_t device_frames,
                                                         std::uint32_t host_frames);

}  // namespace spillway
