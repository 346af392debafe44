#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace spillway {

// Says which kernel of a known iteration the script is about to run. Kernels that are no part of it (something printed,
// an evaluation) have no place; after them, or after kernels left out, it finds its place again.
class Follower {
 public:
  // By kernel; and how many kernels come before the end of each optimizer step in it.
  Follower(std::vector<std::uint64_t> signatures, std::vector<std::uint32_t> anchors);

  // The next kernel's place.
  std::optional<std::uint32_t> next(std::uint64_t signature);
  // An optimizer step has ended. `steps_done`: how many of the iteration's are made, where that is known: operators
  // alone do not tell apart what is trained in turns.
  void anchor(std::optional<std::size_t> steps_done = std::nullopt);

 private:
  // Kernels in a row that must agree before the place is believed to be there.
  static constexpr std::uint32_t kSure = 3;

  std::vector<std::uint64_t> signatures_;
  std::vector<std::uint32_t> anchors_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> places_;  // ascending
  std::uint32_t at_ = 0;                                                  // the kernel that is expected
  std::uint32_t ahead_ = 0;                                               // or this one, if so many more have agreed
  std::uint32_t agreed_ = 0;
};

}  // namespace spillway
