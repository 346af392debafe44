#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/check.h"

// Records in shared memory: one thread at a time writes them, and other threads and processes read them at any time,
// also after a kill -9 of the writer. All bytes zero is a record that nobody has written yet.
namespace spillway {

// A record, word by word. What is read while somebody writes may be a mixture of two, but that is no data race. A
// reader that has seen one word of a record sees all that its writer did before it.
template <class T>
class SharedWords {
 public:
  void store(const T& record) noexcept {
    const auto words = std::bit_cast<Words>(record);
    for (std::size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], std::memory_order_release);
  }
  T load() const noexcept {
    Words words{};
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = words_[i].load(std::memory_order_acquire);
    return std::bit_cast<T>(words);
  }

 private:
  using Words = std::array<std::uint64_t, sizeof(T) / sizeof(std::uint64_t)>;
  static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T> &&
                sizeof(Words) == sizeof(T));
  std::array<std::atomic<std::uint64_t>, sizeof(T) / sizeof(std::uint64_t)> words_{};
};

// A record that is replaced as a whole: of two copies the one that `version_` names is not written to.
template <class T>
class Latest {
 public:
  void store(const T& record) noexcept {
    const std::uint64_t version = version_.load(std::memory_order_relaxed) + 1;
    copies_[version % 2].store(record);
    version_.store(version, std::memory_order_release);
  }
  // Tries again where another one was written meanwhile: the one after that goes where this one is read, and who meets
  // a word of it finds the version changed, too.
  T load() const noexcept {
    for (std::uint64_t version = version_.load(std::memory_order_acquire);;) {
      const T record = copies_[version % 2].load();
      const std::uint64_t now = version_.load(std::memory_order_acquire);
      if (now == version) return record;
      version = now;
    }
  }

 private:
  std::atomic<std::uint64_t> version_{0};
  std::array<SharedWords<T>, 2> copies_;
};

// Records one after the other, of which the last one may still change. There may be more than have room.
template <class T, std::size_t kRoom>
class History {
 public:
  struct Last {
    std::uint64_t count = 0;  // of all; 0: there is no record
    T record{};
  };

  // The writer's.
  void add(const T& record) noexcept {
    const Last before = last();
    if (before.count > 0 && before.count <= kRoom) earlier_[before.count - 1].store(before.record);
    last_.store({before.count + 1, record});
  }
  void replace_last(const T& record) noexcept {
    const std::uint64_t all = count();
    CHECK(all > 0);
    last_.store({all, record});
  }
  void clear() noexcept { last_.store({}); }

  // Anybody's.
  std::uint64_t count() const noexcept { return last().count; }
  Last last() const noexcept { return last_.load(); }

  // Once the writer has ended: how many have room, and one of them.
  std::size_t size() const noexcept { return count() < kRoom ? static_cast<std::size_t>(count()) : kRoom; }
  T operator[](std::size_t place) const noexcept {
    const Last end = last();
    CHECK(place < end.count && place < kRoom);
    return place + 1 == end.count ? end.record : earlier_[place].load();
  }

 private:
  Latest<Last> last_;
  std::array<SharedWords<T>, kRoom> earlier_;  // all but the last one
};

}  // namespace spillway
