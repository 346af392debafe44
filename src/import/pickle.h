#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace spillway {

// Plain data of a pickle: values name each other by their places, so one that several hold is there once.
class Pickle {
 public:
  using Value = std::uint32_t;

  Value root() const { return root_; }
  // Nothing where the value is of another kind; so for None, True, False, floats, and numbers beyond 64 bits.
  std::optional<std::int64_t> number(Value value) const;
  std::optional<std::string_view> text(Value value) const;
  // Of a list or a tuple.
  std::optional<std::span<const Value>> items(Value value) const;
  bool is_dictionary(Value value) const;
  // What a dictionary has under that key; of several such entries the last. Searches all of its keys, and none where
  // there are more than 64: no record has as many.
  std::optional<Value> find(Value dictionary, std::string_view key) const;

 private:
  friend class PickleReader;
  // Their items are sequences_[place]; of a dictionary keys and values in turns.
  struct Sequence {
    std::uint32_t place = 0;
  };
  struct Dictionary {
    std::uint32_t place = 0;
  };

  std::vector<std::variant<std::monostate, std::int64_t, std::string_view, Sequence, Dictionary>> values_;
  std::vector<std::vector<Value>> sequences_;
  Value root_ = 0;
};

// Reads the pickles of plain data: dictionaries, lists, tuples, texts, numbers, None, True and False, in
// protocols 2 to 5.
// Nothing is ever run: an opcode that would make an object or look up a function is refused by its name. The texts are
// parts of `bytes`, which must live as long as the result. `where` begins the errors ("cannot import FILE").
Result<Pickle> parse_pickle(std::string_view bytes, const std::string& where);

}  // namespace spillway
