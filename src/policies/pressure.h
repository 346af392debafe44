#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace spillway {

// A number for each kernel (bytes over or under a capacity) under additions to ranges of kernels, with the questions
// that planning asks of it. Every call is O(log kernels), benefit() as long as few kernels of a range lie between 0 and
// `size`, and never takes more than kMostSteps beyond that. Ranges are [begin, end).
class Pressure {
 public:
  using Wide = __int128;  // bytes times nanoseconds of a whole iteration exceed 64 bits

  // `weights` are the kernels' durations.
  Pressure(std::span<const std::int64_t> values, std::span<const std::uint64_t> weights);

  void add(std::uint32_t begin, std::uint32_t end, std::int64_t amount);
  std::int64_t max(std::uint32_t begin, std::uint32_t end) const;
  std::int64_t max() const { return nodes_[1].max; }

  // The sum over the range of min(size, max(0, value)) times weight: what `size` bytes less would take from the excess.
  // Where that takes more steps than kMostSteps, neighbouring kernels count by the mean of their values from there on.
  // `steps`: those taken are added.
  static constexpr std::uint64_t kMostSteps = 4096;
  Wide benefit(std::uint32_t begin, std::uint32_t end, std::int64_t size, std::uint64_t& steps) const;

  // The smallest index i in [begin, end] such that all values in [i, end) are at most `limit`.
  std::uint32_t run_before(std::uint32_t begin, std::uint32_t end, std::int64_t limit) const;

 private:
  struct Node {
    std::int64_t min, max;
    std::int64_t pending = 0;  // added to this node, not yet to its children
    std::uint64_t weight;
    Wide weighted;  // the sum of value times weight
  };
  void pull(std::uint32_t node);
  void add(std::uint32_t node, std::uint32_t low, std::uint32_t high, std::uint32_t begin, std::uint32_t end,
           std::int64_t amount);
  std::int64_t max(std::uint32_t node, std::uint32_t low, std::uint32_t high, std::uint32_t begin, std::uint32_t end,
                   std::int64_t pending) const;
  struct Benefit;  // one call's question
  Wide benefit(std::uint32_t node, std::uint32_t low, std::uint32_t high, std::int64_t pending, Benefit& asked) const;
  std::int64_t last_above(std::uint32_t node, std::uint32_t low, std::uint32_t high, std::uint32_t begin,
                          std::uint32_t end, std::int64_t limit, std::int64_t pending) const;

  std::uint32_t size_ = 1;  // a power of two
  std::vector<Node> nodes_;
};

}  // namespace spillway
