#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
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

  explicit TensorHeap(std::uint32_t blocks);

  // Finds a place; nothing is taken until commit(), which must follow or cancel().
  std::optional<Place> propose(Bytes bytes);
  Place commit(const Place& place);  // with its id
  void cancel(const Place& place);
  // The tensor that begins there dies.
  std::optional<Place> remove(std::uint64_t offset);

  // Blocks in which a tensor lives, and how many more this place would make it.
  std::uint32_t blocks_in_use() const { return in_use_; }
  std::uint32_t new_blocks(const Place& place) const;

 private:
  struct Part {
    std::uint64_t begin;
    AddressSpace space;
  };

  Part small_, large_;
  std::vector<std::uint32_t> tensors_;  // in each block
  std::uint32_t in_use_ = 0;
  std::unordered_map<std::uint64_t, Place> places_;
  std::vector<TensorId> free_ids_;
  std::uint32_t next_id_ = 0;
};

}  // namespace spillway
