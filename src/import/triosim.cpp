#include "import/triosim.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "import/assembly.h"
#include "import/csv.h"
#include "trace/validate.h"

namespace spillway {
namespace {

constexpr std::string_view kProcess = "make the tables again with TrioSim's tracer/dataprocess.py";
constexpr std::uint64_t kMostTrioBytes = std::uint64_t{1} << 50;
constexpr double kMostTrioMicroseconds = 1e12;  // 11 days

std::unexpected<Error> bad(std::string what) { return fail(Errc::bad_input, std::move(what)); }

Result<std::uint64_t> whole(std::string_view text, std::string_view column) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size())
    return bad(fmt::format("'{}' is no whole number of at least 0", column));
  return number;
}

class TrioReader {
 public:
  explicit TrioReader(const std::string& name) : assembly_(name, "triosim") {}

  Result<> read_tensor(const std::vector<std::string_view>& values) {
    TRY(const std::uint64_t id, whole(values[0], "TensorID"));
    TRY(const std::uint64_t storage, whole(values[1], "TensorStorgeid"));
    TRY(const std::uint64_t elements, whole(values[2], "TensorNumElement"));
    TRY(const std::uint64_t element, whole(values[3], "TensorEachByte"));
    const unsigned __int128 bytes = static_cast<unsigned __int128>(elements) * element;
    if (bytes > kMostTrioBytes) return bad("the tensor has more than 2^50 bytes");
    Known& known = known_[id];
    known.storage = storage;
    known.bytes = std::max(known.bytes, Bytes{static_cast<std::uint64_t>(bytes)});
    const std::string_view type = values[4];
    if (type == "weight" || type == "bias" || type == "running_mean" || type == "running_var") known.weight = true;
    return {};
  }

  Result<> read_operator(const std::vector<std::string_view>& values) {
    const std::string_view name = values[0], stage = values[4];
    TRY(const std::vector<std::uint64_t> inputs, list(values[1], "Operator_input"));
    TRY(const std::vector<std::uint64_t> outputs, list(values[2], "Operator_output"));
    TRY(const Nanos time, time_of(values[3]));
    std::unordered_set<std::uint64_t> given;
    for (const std::uint64_t id : inputs) given.insert(known_[id].storage);
    const bool makes =
        std::ranges::any_of(outputs, [&](std::uint64_t id) { return !given.contains(known_[id].storage); });
    const bool in_place = name.ends_with('_');
    if (!makes && !in_place) {  // views, and numbers that the script reads
      gap_ = std::min(gap_ + time, kMostIterationTime);
      return {};
    }
    const Phase phase = stage == "backward"    ? Phase::backward
                        : stage == "optimizer" ? Phase::optimizer
                                               : Phase::forward;
    assembly_.begin(std::string(name), phase, time, std::exchange(gap_, Nanos{}));
    for (const std::uint64_t id : inputs)
      if (const auto tensor = given_tensor(id)) assembly_.read(*tensor);
    // A result that was given is changed in place; without results all that was given may be.
    if (in_place)
      for (const std::uint64_t id : outputs.empty() ? inputs : outputs)
        if (given.contains(known_[id].storage))
          if (const auto tensor = given_tensor(id)) assembly_.write(*tensor);
    std::unordered_set<std::uint64_t> made;
    for (const std::uint64_t id : outputs) {
      const Known& known = known_[id];
      if (given.contains(known.storage) || known.bytes.value == 0) continue;
      if (made.insert(known.storage).second)
        lives_[known.storage] = assembly_.add(fmt::format("storage{}", known.storage), known.bytes, true);
      assembly_.grow(lives_[known.storage], known.bytes);
      assembly_.write(lives_[known.storage]);
    }
    if (assembly_.too_large()) return bad("the table has more uses of tensors than we read");
    return {};
  }

  Result<Trace> finish(const std::string& file) && {
    for (const auto& [tensor, weight] : outside_)
      if (assembly_.read_first({tensor}) && (weight || assembly_.written({tensor})))
        assembly_.keep({tensor}, assembly_.first_phase({tensor}) == Phase::optimizer ? TensorKind::optimizer_state
                                                                                     : TensorKind::weight);
    return std::move(assembly_).finish("cannot import " + file);
  }

 private:
  struct Known {
    std::uint64_t storage = 0;
    Bytes bytes = {};
    bool weight = false;
  };

  // "[4; 6]"; each must be a tensor of the other table.
  Result<std::vector<std::uint64_t>> list(std::string_view text, std::string_view column) const {
    if (!text.starts_with('[') || !text.ends_with(']') || text.size() < 2)
      return bad(fmt::format("'{}' is no list like [4; 6]", column));
    text = text.substr(1, text.size() - 2);
    std::vector<std::uint64_t> ids;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(';'), text.size());
      TRY(const std::uint64_t id, whole(text.substr(0, end), column));
      if (!known_.contains(id)) return bad(fmt::format("the tensor {} is not in the table of tensors", id));
      ids.push_back(id);
      text.remove_prefix(std::min(end + 1, text.size()));
      while (text.starts_with(' ')) text.remove_prefix(1);
    }
    return ids;
  }

  static Result<Nanos> time_of(std::string_view text) {
    double microseconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), microseconds);
    if (error != std::errc{} || end != text.data() + text.size() ||
        !(microseconds >= 0 && microseconds <= kMostTrioMicroseconds))
      return bad("'Operator_cudatimenooverlap' is no time in microseconds from 0 to 10^12");
    return Nanos{static_cast<std::uint64_t>(std::llround(microseconds * 1000))};
  }

  // Nothing for what has no bytes.
  std::optional<TensorId> given_tensor(std::uint64_t id) {
    const Known& known = known_[id];
    if (known.bytes.value == 0) return std::nullopt;
    const auto [place, is_new] = lives_.try_emplace(known.storage);
    if (is_new) {
      place->second = assembly_.add(fmt::format("storage{}", known.storage), known.bytes);
      outside_.emplace(place->second.value, false);
    }
    if (const auto outside = outside_.find(place->second.value); outside != outside_.end())
      outside->second = outside->second || known.weight;
    assembly_.grow(place->second, known.bytes);
    return place->second;
  }

  Assembly assembly_;
  std::unordered_map<std::uint64_t, Known> known_;     // by TensorID
  std::unordered_map<std::uint64_t, TensorId> lives_;  // by storage, the last one there
  std::unordered_map<std::uint32_t, bool> outside_;    // tensors from before the iteration; whether one is a weight
  Nanos gap_{};
};

}  // namespace

Result<Trace> parse_triosim(std::string_view operators, std::string_view tensors, const std::string& operators_file,
                            const std::string& tensors_file, const std::string& name) {
  TrioReader reader(name);
  TRY_VOID(read_csv(tensors, {"TensorID", "TensorStorgeid", "TensorNumElement", "TensorEachByte", "TensorType"},
                    tensors_file, kProcess,
                    [&](const std::vector<std::string_view>& values) { return reader.read_tensor(values); }));
  TRY_VOID(read_csv(operators,
                    {"OperatorName", "Operator_input", "Operator_output", "Operator_cudatimenooverlap", "stage"},
                    operators_file, kProcess,
                    [&](const std::vector<std::string_view>& values) { return reader.read_operator(values); }));
  return std::move(reader).finish(operators_file);
}

}  // namespace spillway
