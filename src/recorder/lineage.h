#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "base/spare_nodes.h"

// Which kernels and tensors of different iterations play the same part: a kernel is known by its name and by how what
// it is given came to be, a tensor by the kernel that made it. DeepUM hashes a kernel's name and arguments
// (section 3.1), addresses among them; here neither addresses nor shapes count, so that a script whose tensors come to
// lie elsewhere, or grow, repeats itself all the same.
namespace spillway {

inline constexpr std::size_t kGenerations = 3;

// How a tensor came to be. Bounded, since what a script carries on for ever (an average, a hidden state) would be
// another one in each iteration if all its ancestors counted.
struct Lineage {
  // Hashes of the kernel that made it: alone, with those that made what that one was given, and so on.
  std::array<std::uint64_t, kGenerations> generations{};
  bool is_root = true;       // made of nothing
  std::uint64_t family = 0;  // of those alike
  std::uint32_t place = 0;   // in it
  TensorLabel label{};
};

class KernelLineage {
 public:
  explicit KernelLineage(std::string_view name);
  // One of its arguments, in order.
  void given(const Lineage& tensor);

  ExecutionId execution() const { return {generations_.back()}; }
  // Of what it makes, counted from 0.
  Lineage birth(std::size_t index) const;

 private:
  std::array<std::uint64_t, kGenerations + 1> generations_{};
  bool given_nothing_ = true;
};

// Tells apart tensors of the same lineage that are alive at the same time: each has the first free place in its family.
// Roots (weights, above all) pass their places on; others are known by their parents, and what becomes of a tensor and
// of its successor, which live side by side for a moment, is the same.
class Families {
 public:
  void join(Lineage& newborn);
  void leave(const Lineage& dead);

 private:
  struct Family {
    std::uint32_t members = 0, end = 0;  // places below `end` were taken at some time
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free;
  };
  std::unordered_map<std::uint64_t, Family> families_;
  SpareNodes<std::unordered_map<std::uint64_t, Family>> spare_families_;
};

}  // namespace spillway
