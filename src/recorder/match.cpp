#include "recorder/match.h"

#include <fmt/format.h>

#include "base/check.h"

namespace spillway {
namespace {

class Matcher {
 public:
  Matcher(Group first, Group second, std::size_t period)
      : first_start_(first.front()->number), second_start_(second.front()->number), period_(period) {}

  // Empty if they could do the same, else how they differ.
  static std::string compare_operators(const Segment& a, const SegmentKernel& x, const Segment& b,
                                       const SegmentKernel& y) {
    if (x.name != y.name) return fmt::format("{} in one and {} in the other", x.name, y.name);
    if (x.phase != y.phase) return fmt::format("{} in different phases", x.name);
    if (x.shapes != y.shapes) return fmt::format("{} with other shapes", x.name);
    const auto x_births = a.births_of(x), y_births = b.births_of(y);
    const std::size_t x_uses = a.accesses_of(x).size(), y_uses = b.accesses_of(y).size();
    if (x_uses != y_uses || x_births.size() != y_births.size())
      return fmt::format("{} with {} and {} tensors", x.name, x_uses + x_births.size(), y_uses + y_births.size());
    for (std::size_t i = 0; i < x_births.size(); ++i)
      if (const Bytes s = a.storages[x_births[i]].bytes, t = b.storages[y_births[i]].bytes; s != t)
        return fmt::format("{} makes {} and {} bytes", x.name, s.value, t.value);
    return {};
  }

  // Empty if they do it with the same memory, else how they differ.
  std::string compare_memory(const Segment& a, const SegmentKernel& x, const Segment& b, const SegmentKernel& y) {
    const auto x_births = a.births_of(x), y_births = b.births_of(y);
    for (std::size_t i = 0; i < x_births.size(); ++i)
      if (!pair(a.storages[x_births[i]], b.storages[y_births[i]], true))
        return fmt::format("{} makes other memory (tensor {})", x.name, i);
    const auto x_uses = a.accesses_of(x), y_uses = b.accesses_of(y);
    for (std::size_t i = 0; i < x_uses.size(); ++i)
      if (!same_access(a, x_uses[i], b, y_uses[i], x.updates || y.updates))
        return fmt::format("{} uses other memory (argument {})", x.name, i);
    return {};
  }

  Roles take_roles() {
    CHECK(roles_.size() == taken_.size());  // No two play the same part.
    return std::move(roles_);
  }

 private:
  bool same_access(const Segment& a, const SegmentAccess& x, const Segment& b, const SegmentAccess& y, bool updates) {
    const SegmentStorage& s = a.storages[x.storage];
    const SegmentStorage& t = b.storages[y.storage];
    if (x.reads != y.reads || x.writes != y.writes || x.sparse != y.sparse) return false;
    const bool same_extent = x.begin == y.begin && x.end == y.end;
    if (!same_extent && (born_in_first(s) || x.end - x.begin != y.end - y.begin)) return false;
    // A batch may be another part of the same data set, and what is put down (a loss, a prediction) another part of
    // the same list; an update of another part is another step.
    if (!same_extent && x.writes && (s.id != t.id || updates)) return false;
    return pair(s, t, !x.writes);
  }

  bool born_in_first(const SegmentStorage& s) const { return s.birth_segment >= first_start_; }

  bool pair(const SegmentStorage& s, const SegmentStorage& t, bool may_be_input) {
    const auto known = roles_.find(s.id);
    if (known != roles_.end()) {
      if (known->second != t.id) return false;
      return may_be_input || !inputs_.contains(s.id);
    }
    if (s.bytes != t.bytes || taken_.contains(t.id)) return false;
    const bool inner = born_in_first(s);
    if (s.id != t.id) {
      if (inner != (t.birth_segment >= second_start_)) return false;
      if (!inner && !(reborn(s, first_start_) && reborn(t, second_start_))) {
        if (!may_be_input) return false;
        inputs_.emplace(s.id, t.id);
      }
    }
    roles_.emplace(s.id, t.id);
    taken_.emplace(t.id, s.id);
    return true;
  }

  bool reborn(const SegmentStorage& s, std::uint64_t start) const { return s.birth_segment + period_ >= start; }

  std::uint64_t first_start_, second_start_;
  std::uint64_t period_;
  Roles roles_, taken_, inputs_;
};

}  // namespace

std::expected<Roles, std::string> match(Group first, Group second, MatchOptions options) {
  CHECK(first.size() == second.size() && !first.empty());
  CHECK(options.skipped_first <= first.front()->kernels.size());
  CHECK(options.skipped_second <= second.front()->kernels.size());
  // Nothing if it holds for all pairs of kernels that there are in both, else what `differs` says of the first other
  // one.
  const auto first_difference = [&](auto&& differs) -> std::expected<void, std::string> {
    for (std::size_t s = 0; s < first.size(); ++s) {
      const Segment& a = *first[s];
      const Segment& b = *second[s];
      const std::size_t skip_a = s == 0 ? options.skipped_first : 0;
      const std::size_t skip_b = s == 0 ? options.skipped_second : 0;
      const std::size_t count_a = a.kernels.size() - skip_a, count_b = b.kernels.size() - skip_b;
      for (std::size_t k = 0; k < std::min(count_a, count_b); ++k) {
        const std::string difference = differs(a, a.kernels[skip_a + k], b, b.kernels[skip_b + k]);
        if (!difference.empty()) return std::unexpected(fmt::format("kernel {} of {}: {}", k + 1, count_b, difference));
      }
      if (count_a != count_b)
        return std::unexpected(fmt::format("{} kernels in one and {} in the other", count_a, count_b));
    }
    return {};
  };
  // Apart, and first: that costs little, and scripts that never settle come here after each step.
  const auto other_operators = first_difference(Matcher::compare_operators);
  if (!other_operators) return std::unexpected(other_operators.error());
  Matcher matcher(first, second, std::max(options.period, first.size()));
  const auto other_memory =
      first_difference([&](const Segment& a, const SegmentKernel& x, const Segment& b, const SegmentKernel& y) {
        return matcher.compare_memory(a, x, b, y);
      });
  if (!other_memory) return std::unexpected(other_memory.error());
  return matcher.take_roles();
}

}  // namespace spillway
