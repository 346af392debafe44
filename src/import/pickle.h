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
  // Nothing where the value is of another kind. A number that does not fit 64 bits is none.
  std::optional<std::int64_t> number(Value value) const;
  std::optional<std::string_view> text(Value value) const;
  // Of a list or a tuple.
  std::optional<std::span<const Value>> items(Value value) const;
  // What a dictionary has under that key; of several such entries the last.
  std::optional<Value> find(Value dictionary, std::string_view key) const;

 private:
  friend class PickleReader;
  struct Sequence {
    std::size_t items;  // in sequences_
  };
  struct Dictionary {
    std::size_t items;  // in sequences_: keys and values in turns
  };
  // Nothing stands for None, True, False, floats and large numbers: nobody asks for these.
  using Data = std::variant<std::monostate, std::int64_t, std::string_view, Sequence, Dictionary>;

  std::vector<Data> values_;
  std::vector<std::vector<Value>> sequences_;
  Value root_ = 0;
};

// Reads the pickles of plain data: dictionaries, lists, tuples, texts, numbers, None, True, False; protocols 2 to 5.
// Nothing is ever run: an opcode that would make an object or look up a function is refused by its name. The texts are
// parts of `bytes`, which must live as long as the result. `where` begins the errors ("cannot import FILE").
Result<Pickle> parse_pickle(std::string_view bytes, const std::string& where);

}  // namespace spillway
