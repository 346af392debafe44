#include "import/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "base/units.h"

namespace spillway {
namespace {

constexpr std::size_t kMostKeys = 64;
constexpr Bytes kMostHeld = 2_GiB;  // of values: a small hostile file could make us hold far more
constexpr std::uint64_t kNewestProtocol = 5;
constexpr std::size_t kLongestName = 80;

// What would look up a class or a function, make an object or call something.
struct Refused {
  std::uint8_t opcode;
  std::string_view name;
};
constexpr Refused kRefused[] = {
    {'c', "GLOBAL"}, {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},     {'b', "BUILD"},  {'i', "INST"},
    {'o', "OBJ"},    {0x81, "NEWOBJ"},       {0x92, "NEWOBJ_EX"}, {'P', "PERSID"}, {'Q', "BINPERSID"},
    {0x82, "EXT1"},  {0x83, "EXT2"},         {0x84, "EXT4"},
};

}  // namespace

std::optional<std::int64_t> Pickle::number(Value value) const {
  const auto* number = std::get_if<std::int64_t>(&values_[value]);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<std::string_view> Pickle::text(Value value) const {
  const auto* text = std::get_if<std::string_view>(&values_[value]);
  return text == nullptr ? std::nullopt : std::optional(*text);
}

std::optional<std::span<const Pickle::Value>> Pickle::items(Value value) const {
  const auto* sequence = std::get_if<Sequence>(&values_[value]);
  if (sequence == nullptr) return std::nullopt;
  return sequences_[sequence->place];
}

bool Pickle::is_dictionary(Value value) const { return std::holds_alternative<Dictionary>(values_[value]); }

std::optional<Pickle::Value> Pickle::find(Value dictionary, std::string_view key) const {
  const auto* found = std::get_if<Dictionary>(&values_[dictionary]);
  if (found == nullptr) return std::nullopt;
  const std::vector<Value>& items = sequences_[found->place];
  if (items.size() > 2 * kMostKeys) return std::nullopt;
  for (std::size_t i = items.size(); i >= 2; i -= 2)
    if (text(items[i - 2]) == key) return items[i - 1];
  return std::nullopt;
}

// The stack machine that a pickle is a program for, as far as plain data needs it.
class PickleReader {
 public:
  PickleReader(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  Result<Pickle> read() {
    if (!bytes_.starts_with('\x80'))
      return fail(Errc::bad_input, fmt::format("{}: it does not begin as a pickle of protocol 2 to 5 does", where_));
    while (true) {
      opcode_at_ = at_;
      TRY(const std::uint64_t opcode, unsigned_number(1));
      if (opcode == '.') break;
      const Step& step = kByOpcode[opcode];
      if (step.run == nullptr) return refuse(static_cast<std::uint8_t>(opcode));
      TRY_VOID((this->*step.run)(step.argument));
      if (held_ > kMostHeld)
        return wrong(fmt::format("its values take more than {}; record fewer events", to_text(kMostHeld)));
    }
    TRY(pickle_.root_, pop());
    return std::move(pickle_);
  }

 private:
  using Value = Pickle::Value;
  using Items = std::vector<Value>;

  std::unexpected<Error> wrong(std::string_view what) const {
    return fail(Errc::bad_input, fmt::format("{}: byte {}: {}", where_, opcode_at_, what));
  }

  std::unexpected<Error> refuse(std::uint8_t opcode) const {
    const auto* refused = std::ranges::find(kRefused, opcode, &Refused::opcode);
    if (refused == std::end(kRefused))
      return wrong(fmt::format("the opcode {:#04x} is not one of plain data; is this a memory snapshot?", opcode));
    std::string name(refused->name);
    if (opcode == 'c') {  // a module and a name, each to the end of a line
      const std::string_view rest = bytes_.substr(at_);
      std::string looked_up(rest.substr(0, std::min(rest.find('\n', rest.find('\n') + 1), kLongestName)));
      std::ranges::replace(looked_up, '\n', '.');
      std::ranges::replace_if(looked_up, [](char c) { return c < '!' || c > '~'; }, '?');
      name += " " + looked_up;
    }
    return wrong(
        fmt::format("the opcode {} is one that runs code, and plain data has none. Nothing was run. Do not "
                    "open this file with Python's pickle either",
                    name));
  }

  Result<std::string_view> take(std::uint64_t count) {
    if (count > bytes_.size() - at_) return wrong("the file ends within a value; is it cut off?");
    return bytes_.substr(std::exchange(at_, at_ + count), count);
  }
  Result<> skip(std::uint64_t count) {
    TRY_VOID(take(count));
    return {};
  }
  // Little-endian.
  Result<std::uint64_t> unsigned_number(std::uint64_t bytes) {
    TRY(const std::string_view taken, take(bytes));
    std::uint64_t number = 0;
    for (std::size_t b = taken.size(); b-- > 0;) number = number << 8 | static_cast<std::uint8_t>(taken[b]);
    return number;
  }

  Result<Value> top() const {
    const std::size_t bottom = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= bottom) return wrong("it takes a value where there is none");
    return stack_.back();
  }
  Result<Value> pop() {
    TRY(const Value value, top());
    stack_.pop_back();
    return value;
  }
  Result<Items> pop_some(std::uint64_t count) {
    Items items(count);
    for (std::size_t i = items.size(); i-- > 0;) {
      TRY(items[i], pop());
    }
    return items;
  }
  Result<Items> pop_to_mark() {
    if (marks_.empty()) return wrong("it takes values back to a mark where there is none");
    Items items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }

  template <class Data>
  Result<> push(Data data) {
    pickle_.values_.emplace_back(data);
    stack_.push_back(static_cast<Value>(pickle_.values_.size() - 1));
    held_ += Bytes{sizeof pickle_.values_[0] + sizeof(Value)};
    return {};
  }
  template <class Kind>
  Result<> push_items(Items items) {
    held_ += Bytes{sizeof(Items) + items.size() * sizeof(Value)};
    pickle_.sequences_.push_back(std::move(items));
    return push(Kind{static_cast<std::uint32_t>(pickle_.sequences_.size() - 1)});
  }

  // Each of the following is what some opcodes do; `argument` is what kSteps says.

  Result<> protocol(std::uint64_t) {
    TRY(const std::uint64_t protocol, unsigned_number(1));
    if (protocol > kNewestProtocol) return wrong(fmt::format("it is of protocol {}, newer than we read", protocol));
    return {};
  }
  Result<> mark(std::uint64_t) {
    marks_.push_back(stack_.size());
    held_ += Bytes{sizeof marks_[0]};
    return {};
  }
  Result<> nothing(std::uint64_t bytes) {
    TRY_VOID(take(bytes));
    return push(std::monostate());
  }
  Result<> whole(std::uint64_t bytes) {
    TRY(const std::uint64_t number, unsigned_number(bytes));
    return push(static_cast<std::int64_t>(number));
  }
  // In two's complement.
  Result<> integer(std::uint64_t bytes) {
    if (bytes > sizeof(std::int64_t)) return nothing(bytes);
    TRY(std::uint64_t number, unsigned_number(bytes));
    if (bytes > 0 && bytes < sizeof number && (number >> (8 * bytes - 1) & 1) != 0)
      number |= ~std::uint64_t{0} << 8 * bytes;
    return push(static_cast<std::int64_t>(number));
  }
  Result<> sized_integer(std::uint64_t bytes) {
    TRY(const std::uint64_t size, unsigned_number(bytes));
    return integer(size);
  }
  Result<> sized_text(std::uint64_t bytes) {
    TRY(const std::uint64_t size, unsigned_number(bytes));
    TRY(const std::string_view text, take(size));
    return push(text);
  }
  Result<> empty_sequence(std::uint64_t) { return push_items<Pickle::Sequence>({}); }
  Result<> empty_dictionary(std::uint64_t) { return push_items<Pickle::Dictionary>({}); }
  Result<> tuple(std::uint64_t count) {
    TRY(Items items, pop_some(count));
    return push_items<Pickle::Sequence>(std::move(items));
  }
  Result<> tuple_to_mark(std::uint64_t) {
    TRY(Items items, pop_to_mark());
    return push_items<Pickle::Sequence>(std::move(items));
  }
  Result<> add_some(std::uint64_t count) {
    TRY(const Items items, pop_some(count));
    return add(items);
  }
  Result<> add_to_mark(std::uint64_t) {
    TRY(const Items items, pop_to_mark());
    return add(items);
  }
  Result<> drop(std::uint64_t) {
    TRY_VOID(pop());
    return {};
  }
  Result<> remember_next(std::uint64_t) { return remember_as(memo_.size()); }
  Result<> remember(std::uint64_t bytes) {
    TRY(const std::uint64_t place, unsigned_number(bytes));
    return remember_as(place);
  }
  Result<> recall(std::uint64_t bytes) {
    TRY(const std::uint64_t place, unsigned_number(bytes));
    if (place >= memo_.size() || !memo_[place]) return wrong(fmt::format("it recalls value {}: there is none", place));
    stack_.push_back(*memo_[place]);
    held_ += Bytes{sizeof(Value)};
    return {};
  }

  // To the list or dictionary that is next on the stack, and stays there.
  Result<> add(const Items& items) {
    TRY(const Value to, top());
    const auto* list = std::get_if<Pickle::Sequence>(&pickle_.values_[to]);
    const auto* dictionary = std::get_if<Pickle::Dictionary>(&pickle_.values_[to]);
    if (list == nullptr && dictionary == nullptr) return wrong("it adds to what is neither a list nor a dictionary");
    if (dictionary != nullptr && items.size() % 2 != 0) return wrong("it adds a key without a value");
    Items& all = pickle_.sequences_[list != nullptr ? list->place : dictionary->place];
    all.insert(all.end(), items.begin(), items.end());
    held_ += Bytes{items.size() * sizeof(Value)};
    return {};
  }

  Result<> remember_as(std::uint64_t place) {
    TRY(const Value value, top());
    if (place >= bytes_.size()) return wrong(fmt::format("it remembers value {}: it cannot have as many", place));
    if (place >= memo_.size()) memo_.resize(place + 1);
    memo_[place] = value;
    return {};
  }

  struct Step {
    std::uint8_t opcode;
    Result<> (PickleReader::*run)(std::uint64_t argument);
    std::uint64_t argument;  // bytes that follow the opcode, or values that it takes
  };
  static const std::array<Step, 256> kByOpcode;

  std::string_view bytes_;
  const std::string& where_;
  std::size_t at_ = 0, opcode_at_ = 0;
  Bytes held_;  // at least, by all that follows
  Pickle pickle_;
  Items stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::vector<std::optional<Value>> memo_;
};

constinit const std::array<PickleReader::Step, 256> PickleReader::kByOpcode = [] {
  constexpr Step kSteps[] = {
      {0x80, &PickleReader::protocol, 0},         // PROTO
      {0x95, &PickleReader::skip, 8},             // FRAME
      {'(', &PickleReader::mark, 0},              // MARK
      {'0', &PickleReader::drop, 0},              // POP
      {'N', &PickleReader::nothing, 0},           // NONE
      {0x88, &PickleReader::nothing, 0},          // NEWTRUE
      {0x89, &PickleReader::nothing, 0},          // NEWFALSE
      {'G', &PickleReader::nothing, 8},           // BINFLOAT
      {'K', &PickleReader::whole, 1},             // BININT1
      {'M', &PickleReader::whole, 2},             // BININT2
      {'J', &PickleReader::integer, 4},           // BININT
      {0x8a, &PickleReader::sized_integer, 1},    // LONG1
      {0x8b, &PickleReader::sized_integer, 4},    // LONG4
      {0x8c, &PickleReader::sized_text, 1},       // SHORT_BINUNICODE
      {'X', &PickleReader::sized_text, 4},        // BINUNICODE
      {0x8d, &PickleReader::sized_text, 8},       // BINUNICODE8
      {']', &PickleReader::empty_sequence, 0},    // EMPTY_LIST
      {')', &PickleReader::empty_sequence, 0},    // EMPTY_TUPLE
      {'}', &PickleReader::empty_dictionary, 0},  // EMPTY_DICT
      {0x85, &PickleReader::tuple, 1},            // TUPLE1
      {0x86, &PickleReader::tuple, 2},            // TUPLE2
      {0x87, &PickleReader::tuple, 3},            // TUPLE3
      {'t', &PickleReader::tuple_to_mark, 0},     // TUPLE
      {'a', &PickleReader::add_some, 1},          // APPEND
      {'s', &PickleReader::add_some, 2},          // SETITEM
      {'e', &PickleReader::add_to_mark, 0},       // APPENDS
      {'u', &PickleReader::add_to_mark, 0},       // SETITEMS
      {0x94, &PickleReader::remember_next, 0},    // MEMOIZE
      {'q', &PickleReader::remember, 1},          // BINPUT
      {'r', &PickleReader::remember, 4},          // LONG_BINPUT
      {'h', &PickleReader::recall, 1},            // BINGET
      {'j', &PickleReader::recall, 4},            // LONG_BINGET
  };
  std::array<Step, 256> all{};
  for (const Step& step : kSteps) all[step.opcode] = step;
  return all;
}();

Result<Pickle> parse_pickle(std::string_view bytes, const std::string& where) {
  return PickleReader(bytes, where).read();
}

}  // namespace spillway
