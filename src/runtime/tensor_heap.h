#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/spare_nodes.h"
#include "base/units.h"
#include "memory/address_space.h"
#include "memory/tier.h"

namespace spillway {

// Where tensors lie: which bytes of the managed range, and so which blocks. Small tensors share blocks with each other,
// large ones with the ends of their neighbours, so that little is lost by rounding; small and large ones are kept
// apart while there is room, since small ones tend to live long. A plain value: offsets only.
class TensorHeap {
 public:
  struct Place {
    std::uint64_t offset = 0;
    Bytes bytes;
    TensorId tensor;  // an id is used again after its tensor has died
    BlockRange blocks;
  };

  // Smaller tensors lie among each other.
  static constexpr Bytes kLarge = 1_MiB;

  TensorHeap(std::uint32_t blocks, Bytes block_bytes);

  // Finds a place; nothing is taken until commit(), which must follow or cancel().
  std::optional<Place> propose(Bytes bytes);
  // At that offset, which lies in what is set apart; nothing if some of it is taken.
  std::optional<Place> propose_at(std::uint64_t offset, Bytes bytes);
  Place commit(const Place& place);  // with its id
  void cancel(const Place& place);
  // The tensor that begins there dies.
  std::optional<Place> remove(std::uint64_t offset);

  // Whole blocks that only propose_at() uses; nothing if no hole is large enough. Once given up, they serve all again
  // as soon as the last tensor in them has died.
  std::optional<BlockRange> set_apart(std::uint32_t blocks);
  void end_apart(BlockRange apart);

  Bytes bytes_in_use() const { return bytes_in_use_; }  // by tensors
  // Blocks in which a tensor lives, and how many more this place would make it.
  std::uint32_t blocks_in_use() const { return in_use_; }
  std::uint32_t new_blocks(const Place& place) const;
  std::uint32_t most_small_blocks() const { return most_small_; }  // that were in use at a time among the small ones

  void check_invariants() const;  // O(blocks and tensors). For tests.

 private:
  struct Part {
    std::uint64_t begin;
    AddressSpace space;
  };

  struct Apart {
    BlockRange blocks;
    std::uint64_t hole;                            // where the addresses that it took begin; not aligned
    std::map<std::uint64_t, std::uint64_t> taken;  // offset -> bytes
    bool wanted = true;
  };
  bool is_small(BlockId block) const { return block_bytes_.value * block.value < large_.begin; }
  Place place_at(std::uint64_t offset, Bytes bytes) const;
  std::vector<Apart>::iterator apart_with(std::uint64_t offset);
  Bytes hole_bytes(BlockRange blocks) const { return block_bytes_ * (blocks.count + 1); }
  void end_if_empty(std::vector<Apart>::iterator apart);

  Bytes block_bytes_;
  Part small_, large_;
  std::vector<Apart> apart_;
  std::vector<std::uint32_t> tensors_;  // in each block
  Bytes bytes_in_use_;
  std::uint32_t in_use_ = 0, small_in_use_ = 0, most_small_ = 0;
  std::unordered_map<std::uint64_t, Place> places_;
  SpareNodes<std::unordered_map<std::uint64_t, Place>> spare_places_;
  std::vector<TensorId> free_ids_;
  std::uint32_t next_id_ = 0;
};

}  // namespace spillway
