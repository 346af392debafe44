#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace spillway {

// Keeps the nodes of elements that go for those that come, so that a map or a set whose elements come and go all the
// time allocates nothing. A copy of it begins with none. Used with one container, under whatever guards that.
template <class Container>
class SpareNodes {
 public:
  SpareNodes() = default;
  SpareNodes(const SpareNodes&) {}
  SpareNodes& operator=(const SpareNodes&) { return *this; }
  SpareNodes(SpareNodes&&) noexcept = default;
  SpareNodes& operator=(SpareNodes&&) noexcept = default;
  ~SpareNodes() = default;

  void erase(Container& from, typename Container::const_iterator element) {
    if (nodes_.size() == kMost) return static_cast<void>(from.erase(element));
    nodes_.push_back(from.extract(element));
  }
  // The element with that key, which is new if there was none.
  typename Container::iterator put(Container& into, const typename Container::key_type& key)
    requires requires { typename Container::mapped_type; }
  {
    if (nodes_.empty()) return into.try_emplace(key).first;
    Node node = take();
    node.key() = key;
    node.mapped() = {};
    return put(into, std::move(node));
  }
  typename Container::iterator put(Container& into, const typename Container::value_type& value) {
    if (nodes_.empty()) return into.insert(value).first;
    Node node = take();
    node.value() = value;
    return put(into, std::move(node));
  }

 private:
  using Node = typename Container::node_type;
  static constexpr std::size_t kMost = 4096;

  Node take() {
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    return node;
  }
  typename Container::iterator put(Container& into, Node node) {
    auto done = into.insert(std::move(node));
    if (!done.inserted) nodes_.push_back(std::move(done.node));
    return done.position;
  }

  std::vector<Node> nodes_;
};

}  // namespace spillway
