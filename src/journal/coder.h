#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "executor/machine.h"
#include "executor/migration.h"
#include "journal/iteration_ended.h"
#include "memory/tier.h"

namespace spillway {

// Note [Fields]
// What a journal holds is written and read by one list of each struct's fields (fields.h), with which an Encoder and a
// Decoder do the same. The lists take structs apart by structured bindings, so a struct that gets one more field, or a
// variant that gets one more alternative, does not compile before its list says what becomes of it.

inline constexpr Tier last_value(Tier) { return Tier::ssd; }
inline constexpr Urgency last_value(Urgency) { return Urgency::plan; }
inline constexpr IterationEnded::Place last_value(IterationEnded::Place) { return IterationEnded::Place::first; }
inline constexpr Failure::Kind last_value(Failure::Kind) { return Failure::Kind::unreadable; }

// Appends values to a text: whole numbers with 7 bits in each byte, the lowest first and the highest bit set in all but
// the last; labels, which are hashes, with 8 bytes.
class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}

  template <class... T>
  void operator()(const T&... values) {
    (one(values), ...);
  }

 private:
  template <std::unsigned_integral T>
  void one(const T& number) {
    std::uint64_t rest = number;
    for (; rest >= 0x80; rest >>= 7) out_.push_back(static_cast<char>(rest | 0x80));
    out_.push_back(static_cast<char>(rest));
  }
  template <class T>
    requires std::is_enum_v<T>
  void one(const T& value) {
    one(static_cast<std::uint8_t>(value));
  }
  template <class Tag>
  void one(const Id<Tag>& id) {
    one(id.value);
  }
  template <class Tag>
  void one(const Quantity<Tag>& quantity) {
    one(quantity.value);
  }
  template <class Tag>
  void one(const Label<Tag>& label) {
    char bytes[sizeof label.value];
    std::memcpy(bytes, &label.value, sizeof bytes);
    out_.append(bytes, sizeof bytes);
  }
  void one(const std::string& text) {
    one(text.size());
    out_.append(text);
  }
  template <class T>
  void one(const std::span<T>& values) {
    one(values.size());
    for (const T& value : values) one(value);
  }
  template <class T>
  void one(const std::vector<T>& values) {
    one(std::span(values));
  }
  template <class T>
  void one(const std::optional<T>& value) {
    one(value.has_value());
    if (value) one(*value);
  }
  template <class T>
  void one(const std::shared_ptr<T>& value) {
    one(value != nullptr);
    if (value) one(*value);
  }
  template <class... T>
  void one(const std::variant<T...>& value) {
    one(value.index());
    std::visit([this](const auto& alternative) { this->one(alternative); }, value);
  }
  template <class T>
  void one(const PerTier<T>& values) {
    const auto& [device, host, ssd] = values;
    (*this)(device, host, ssd);
  }
  template <class T>
    requires std::is_class_v<T>
  void one(const T& value) {
    fields(*this, value);
  }

  std::string& out_;
};

// Reads them back. What does not fit makes failed() true; all that is read afterwards is without meaning, and nothing
// is read beyond the end. A KernelReady's accesses are in `accesses` until the next one is read.
class Decoder {
 public:
  Decoder(std::string_view bytes, std::vector<BlockAccess>& accesses) : rest_(bytes), accesses_(accesses) {}

  template <class... T>
  void operator()(T&... values) {
    (one(values), ...);
  }
  bool failed() const { return failed_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::uint64_t number(std::uint64_t most) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; !rest_.empty(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      const std::uint64_t bits = byte & 0x7f;
      if (shift > 63 || (shift == 63 && bits > 1)) break;
      value |= bits << shift;
      if (byte < 0x80) return value <= most ? value : fail();
    }
    return fail();
  }
  std::uint64_t fail() {
    failed_ = true;
    rest_ = {};
    return 0;
  }
  // Each takes a byte at least: a short text cannot make us hold much.
  std::size_t count() { return number(rest_.size()); }

  template <std::unsigned_integral T>
  void one(T& value) {
    value = static_cast<T>(number(std::numeric_limits<T>::max()));
  }
  template <class T>
    requires std::is_enum_v<T>
  void one(T& value) {
    value = static_cast<T>(number(static_cast<std::uint8_t>(last_value(T{}))));
  }
  template <class Tag>
  void one(Id<Tag>& id) {
    one(id.value);
  }
  template <class Tag>
  void one(Quantity<Tag>& quantity) {
    one(quantity.value);
  }
  template <class Tag>
  void one(Label<Tag>& label) {
    if (rest_.size() < sizeof label.value) return static_cast<void>(fail());
    std::memcpy(&label.value, rest_.data(), sizeof label.value);
    rest_.remove_prefix(sizeof label.value);
  }
  void one(std::string& text) {
    const std::size_t size = count();
    text = rest_.substr(0, size);
    rest_.remove_prefix(std::min(size, rest_.size()));
  }
  template <class T>
  void one(std::vector<T>& values) {
    values.clear();
    for (std::size_t left = count(); left > 0 && !failed_; --left) one(values.emplace_back());
  }
  template <std::same_as<const BlockAccess> Access>  // A template, since fields.h comes later.
  void one(std::span<Access>& accesses) {
    one(accesses_);
    accesses = accesses_;
  }
  template <class T>
  void one(std::optional<T>& value) {
    bool present = false;
    one(present);
    value.reset();
    if (present) one(value.emplace());
  }
  template <class T>
  void one(std::shared_ptr<const T>& value) {
    bool present = false;
    one(present);
    value = nullptr;
    if (!present) return;
    auto read = std::make_shared<T>();
    one(*read);
    value = std::move(read);
  }
  template <class... T>
  void one(std::variant<T...>& value) {
    std::size_t index = 0;
    one(index);
    if (index >= sizeof...(T)) return static_cast<void>(fail());
    std::size_t at = 0;
    static_cast<void>(((at++ == index ? (one(value.template emplace<T>()), true) : false) || ...));
  }
  template <class T>
  void one(PerTier<T>& values) {
    auto& [device, host, ssd] = values;
    (*this)(device, host, ssd);
  }
  template <class T>
    requires std::is_class_v<T>
  void one(T& value) {
    fields(*this, value);
  }

  std::string_view rest_;
  std::vector<BlockAccess>& accesses_;
  bool failed_ = false;
};

}  // namespace spillway
