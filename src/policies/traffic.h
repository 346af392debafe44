#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace spillway {

// How many bytes can still move in one direction while each kernel runs, host and SSD traffic over the same link. All
// ranges are circular: kernel `kernels` is kernel 0 of the next iteration. Queries are O(log kernels); booking costs
// O(log kernels) for each kernel whose capacity it uses up, which happens once to each.
class Traffic {
 public:
  enum class Lane : std::uint8_t { host, ssd };

  // Bytes that the link and the SSDs can move during each kernel.
  Traffic(std::vector<std::uint64_t> link, std::vector<std::uint64_t> ssd);

  // How many kernels, from `from` on (or back from the one before `until`), `bytes` need on that lane; nothing if more
  // than `most`. In `idle` traffic nothing is booked.
  std::optional<std::uint32_t> forward(Lane lane, std::uint32_t from, std::uint64_t bytes, std::uint32_t most,
                                       bool idle) const;
  std::optional<std::uint32_t> backward(Lane lane, std::uint32_t until, std::uint64_t bytes, std::uint32_t most,
                                        bool idle) const;

  // Where fewer bytes can move in the whole iteration, all that is left is booked.
  void book_forward(Lane lane, std::uint32_t from, std::uint64_t bytes);
  void book_backward(Lane lane, std::uint32_t until, std::uint64_t bytes);

 private:
  // Sums over kernels with updates (a Fenwick tree would not find positions from both ends as simply).
  class Sums {
   public:
    explicit Sums(std::span<const std::uint64_t> values);
    void set(std::uint32_t index, std::uint64_t value);
    std::uint64_t at(std::uint32_t index) const { return nodes_[size_ + index]; }
    std::uint64_t prefix(std::uint32_t end) const;  // of [0, end)
    std::uint64_t total() const { return nodes_[1]; }
    // The smallest end such that the prefix up to it is at least `sum`, which is more than 0 and at most total().
    std::uint32_t reach(std::uint64_t sum) const;

   private:
    std::uint32_t size_;
    std::vector<std::uint64_t> nodes_;
  };

  const Sums& sums(Lane lane, bool idle) const;
  void take(Lane lane, std::uint32_t kernel, std::uint64_t bytes);

  std::uint32_t kernels_;
  std::vector<std::uint64_t> link_left_, ssd_left_;
  Sums host_free_, ssd_free_;  // ssd_free is the lesser of what the SSDs and the link have left
  Sums host_idle_, ssd_idle_;
};

}  // namespace spillway
