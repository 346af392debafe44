#include "plan/block_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "base/check.h"

namespace spillway {
namespace {

struct Use {
  std::uint32_t kernel;
  bool reads = false, writes = false;
  bool sparse = true;  // all accesses are
  friend bool operator==(const Use&, const Use&) = default;
};

// While some tensor lives in the block. Kernels; nothing at the iteration's start and end.
struct Life {
  std::optional<std::uint32_t> begin, end;
  friend bool operator==(const Life&, const Life&) = default;
};

struct Block {
  std::vector<Use> uses;      // ascending
  std::vector<Life> lives;    // ascending, apart
  std::uint32_t tensors = 0;  // that live in it at the moment

  bool used_like(const Block& other) const { return uses == other.uses && lives == other.lives; }
};

class Builder {
 public:
  Builder(const Trace& trace, const Lifetimes& lifetimes, const Places& places, Bytes block_bytes)
      : trace_(trace),
        lifetimes_(lifetimes),
        places_(places),
        block_bytes_(block_bytes),
        most_in_row_(static_cast<std::uint32_t>(std::max<std::uint64_t>(kMostInRow.value / block_bytes.value, 1))) {}

  BlockTrace build() {
    follow_lives();
    for (const Kernel& kernel : trace_.kernels) result_.trace.kernels.push_back(without_accesses(kernel));
    for (auto block = blocks_.begin(); block != blocks_.end();) {
      const auto first = block;
      std::uint32_t count = 0;
      while (block != blocks_.end() && count < most_in_row_ && block->first == first->first + count &&
             block->second.used_like(first->second))
        ++block, ++count;
      add_row({{first->first}, count}, first->second);
    }
    result_.trace.name = trace_.name;
    result_.trace.source = trace_.source;
    return std::move(result_);
  }

 private:
  static Kernel without_accesses(const Kernel& kernel) {
    Kernel copy;
    copy.name = kernel.name;
    copy.phase = kernel.phase;
    copy.duration = kernel.duration;
    copy.gap = kernel.gap;
    copy.flops = kernel.flops;
    return copy;
  }

  template <class F>
  void for_each_block(TensorId tensor, Bytes begin, Bytes end, F&& call) {
    const auto place = places_[tensor.value];
    if (!place || begin == end) return;
    CHECK(begin <= end && end <= trace_[tensor].bytes);
    const std::uint64_t last = (*place + end.value - 1) / block_bytes_.value;
    CHECK(last < UINT32_MAX);
    for (std::uint64_t block = (*place + begin.value) / block_bytes_.value; block <= last; ++block)
      call(blocks_[static_cast<std::uint32_t>(block)]);
  }

  void follow_lives() {
    for (std::uint32_t t = 0; t < trace_.tensors.size(); ++t)
      if (lifetimes_.tensors[t].alive_at_start) begin_life({t}, std::nullopt);
    for (std::uint32_t k = 0; k < trace_.kernels.size(); ++k) {
      for (const TensorId born : lifetimes_.births[k]) begin_life(born, k);
      for (const Access& access : trace_.kernels[k].reads) add_use(k, access, false);
      for (const Access& access : trace_.kernels[k].writes) add_use(k, access, true);
      for (const TensorId dead : lifetimes_.deaths[k]) end_life(dead, k);
    }
  }

  void begin_life(TensorId tensor, std::optional<std::uint32_t> kernel) {
    for_each_block(tensor, {}, trace_[tensor].bytes, [&](Block& block) {
      if (block.tensors++ == 0) block.lives.push_back({.begin = kernel, .end = std::nullopt});
    });
  }
  void end_life(TensorId tensor, std::uint32_t kernel) {
    for_each_block(tensor, {}, trace_[tensor].bytes, [&](Block& block) {
      CHECK(block.tensors > 0);
      if (--block.tensors == 0) block.lives.back().end = kernel;
    });
  }

  void add_use(std::uint32_t kernel, const Access& access, bool writes) {
    for_each_block(access.tensor, access.begin, access.end, [&](Block& block) {
      CHECK(block.tensors > 0 && (block.uses.empty() || block.uses.back().kernel <= kernel));
      if (block.uses.empty() || block.uses.back().kernel != kernel) block.uses.push_back({.kernel = kernel});
      Use& use = block.uses.back();
      (writes ? use.writes : use.reads) = true;
      use.sparse &= access.sparse;
    });
  }

  // The blocks' lives as tensors, one for each; but what is alive at the iteration's end is alive at its start.
  void add_row(BlockRange blocks, const Block& block) {
    if (block.lives.empty()) return;
    const Life& first = block.lives.front();
    const Life& last = block.lives.back();
    CHECK(first.begin.has_value() == last.end.has_value());
    CHECK(last.end.has_value() == (block.tensors == 0));
    std::span lives(block.lives);
    if (!first.begin && !first.end) {
      add(blocks, block.uses, {}, TensorKind::weight);
      return;
    }
    if (!first.begin) {
      const auto old_uses = uses_in(block, first);
      const auto young_uses = uses_in(block, last);
      std::vector<Use> uses(old_uses.begin(), old_uses.end());
      // What is read in the next iteration has bytes, although no kernel here touches them.
      if (young_uses.empty() && !uses.empty()) uses.push_back({.kernel = *last.begin, .writes = true, .sparse = false});
      uses.insert(uses.end(), young_uses.begin(), young_uses.end());
      if (!uses.empty()) {
        const Use& birth = uses[old_uses.size()];
        const TensorId tensor = add(blocks, uses, first.end, kind_of(birth));
        result_.trace.tensors[tensor.value].carried_from = tensor;
      }
      lives = lives.subspan(1, lives.size() - 2);
    }
    for (const Life& life : lives)
      if (const auto uses = uses_in(block, life); !uses.empty()) add(blocks, uses, life.end, kind_of(uses.front()));
  }

  static std::span<const Use> uses_in(const Block& block, const Life& life) {
    const auto begin =
        life.begin ? std::ranges::lower_bound(block.uses, *life.begin, {}, &Use::kernel) : block.uses.begin();
    const auto end = life.end ? std::ranges::upper_bound(block.uses, *life.end, {}, &Use::kernel) : block.uses.end();
    return {begin, end};
  }

  static TensorKind kind_of(const Use& first) {
    if (!first.reads) return TensorKind::activation;
    return first.writes ? TensorKind::workspace : TensorKind::input;
  }

  TensorId add(BlockRange blocks, std::span<const Use> uses, std::optional<std::uint32_t> death, TensorKind kind) {
    CHECK(blocks.count > 0 && blocks.count <= most_in_row_);
    CHECK(result_.homes.size() == result_.trace.tensors.size());
    const TensorId tensor{static_cast<std::uint32_t>(result_.homes.size())};
    const Bytes bytes = block_bytes_ * blocks.count;
    result_.homes.push_back(blocks);
    result_.trace.tensors.push_back({.name = fmt::format("blocks {} to {}", blocks.first.value, blocks.end().value - 1),
                                     .bytes = bytes,
                                     .kind = kind,
                                     .persistent = !death});
    for (const Use& use : uses) {
      Kernel& kernel = result_.trace.kernels[use.kernel];
      const Access access{.tensor = tensor, .end = bytes, .sparse = use.sparse};
      if (use.reads) kernel.reads.push_back(access);
      if (use.writes) kernel.writes.push_back(access);
    }
    if (death) result_.trace.kernels[*death].frees.push_back(tensor);
    return tensor;
  }

  const Trace& trace_;
  const Lifetimes& lifetimes_;
  const Places& places_;
  Bytes block_bytes_;
  std::uint32_t most_in_row_;  // blocks
  std::map<std::uint32_t, Block> blocks_;
  BlockTrace result_;
};

}  // namespace

BlockTrace block_trace(const Trace& trace, const Lifetimes& lifetimes, const Places& places, Bytes block_bytes) {
  CHECK(places.size() == trace.tensors.size() && lifetimes.tensors.size() == trace.tensors.size());
  return Builder(trace, lifetimes, places, block_bytes).build();
}

std::vector<TensorId> replaced_tensors(const Trace& trace, Bytes at_least) {
  std::vector<TensorId> replaced;
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t) {
    const auto& from = trace.tensors[t].carried_from;
    if (from && *from != TensorId{t} && trace.tensors[t].bytes >= at_least)
      replaced.insert(replaced.end(), {TensorId{t}, *from});
  }
  std::ranges::sort(replaced);
  const auto twice = std::ranges::unique(replaced);
  replaced.erase(twice.begin(), twice.end());
  return replaced;
}

Trace with_tensors(Trace rows, const Trace& trace, std::span<const TensorId> tensors) {
  CHECK(rows.kernels.size() == trace.kernels.size());
  std::map<TensorId, TensorId> ids;
  for (const TensorId tensor : tensors) {
    CHECK(ids.emplace(tensor, TensorId{static_cast<std::uint32_t>(rows.tensors.size())}).second);
    rows.tensors.push_back(trace[tensor]);
  }
  for (const auto& [old, id] : ids)
    if (auto& from = rows.tensors[id.value].carried_from) from = ids.at(*from);
  const auto add = [&](std::vector<Access>& to, const std::vector<Access>& from) {
    for (Access access : from)
      if (const auto id = ids.find(access.tensor); id != ids.end()) {
        access.tensor = id->second;
        to.push_back(access);
      }
  };
  for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
    add(rows.kernels[k].reads, trace.kernels[k].reads);
    add(rows.kernels[k].writes, trace.kernels[k].writes);
    for (const TensorId freed : trace.kernels[k].frees)
      if (const auto id = ids.find(freed); id != ids.end()) rows.kernels[k].frees.push_back(id->second);
  }
  return rows;
}

}  // namespace spillway
