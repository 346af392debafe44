#include "import/execution_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "import/assembly.h"
#include "import/json_list.h"

namespace spillway {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kObserve = "record it again with torch.profiler.ExecutionTraceObserver";
constexpr std::size_t kTensorFields = 6;  // tensor, storage, offset, elements, bytes of one, device

// The extent of a tensor in its storage, in elements: what lies between two rows counts, rows that are shown twice do
// not.
std::uint64_t extent_of(std::uint64_t elements, const Sizes& sizes, const Sizes& strides) {
  if (sizes.empty() || sizes.size() != strides.size()) return elements;
  unsigned __int128 extent = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    extent += static_cast<unsigned __int128>(std::max<std::uint64_t>(sizes[d], 1) - 1) * strides[d];
    if (extent > kMostEtBytes) return kMostEtBytes;
  }
  return static_cast<std::uint64_t>(extent);
}

Sizes sizes_of(const Json* list) {
  Sizes sizes;
  if (list == nullptr || !list->is_array()) return sizes;
  for (const Json& one : *list) {
    if (!one.is_number_unsigned()) return {};
    sizes.push_back(one.get<std::uint64_t>());
  }
  return sizes;
}

const Json* at(const Json* list, std::size_t index) {
  return list != nullptr && list->is_array() && index < list->size() ? &(*list)[index] : nullptr;
}

const Json* member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

class EtReader {
 public:
  explicit EtReader(const std::string& where) : where_("cannot import " + where) {}

  Result<std::vector<EtNode>> read(std::string_view json) {
    TRY(const Json rest,
        read_json_list(json, "nodes", where_, kObserve, [this](const Json& node) { return read_node(node); }));
    std::ranges::sort(nodes_, {}, &EtNode::id);
    const auto twice = std::ranges::adjacent_find(nodes_, {}, &EtNode::id);
    if (twice != nodes_.end())
      return fail(Errc::bad_input, fmt::format("{}: two nodes have the id {}; {}", where_, twice->id, kObserve));
    return std::move(nodes_);
  }

 private:
  std::unexpected<Error> wrong(std::string_view what) const {
    return fail(Errc::bad_input, fmt::format("{}: nodes[{}]: {}; {}", where_, at_ - 1, what, kObserve));
  }

  Result<std::uint64_t> number_of(const Json* value, const char* key) const {
    if (value == nullptr || !value->is_number_unsigned())
      return wrong(fmt::format("'{}' is missing or no whole number of at least 0", key));
    return value->get<std::uint64_t>();
  }

  Result<> read_node(const Json& json) {
    ++at_;
    EtNode node;
    TRY(node.id, number_of(member(json, "id"), "id"));
    const Json* name = member(json, "name");
    if (name == nullptr || !name->is_string()) return wrong("'name' is missing or no text");
    node.name = name->get<std::string>();
    // Since 1.0.2 Chakra's: attributes are a list, inputs and outputs objects.
    const bool chakra = member(json, "attrs") != nullptr;
    TRY(node.parent, number_of(member(json, chakra ? "ctrl_deps" : "parent"), chakra ? "ctrl_deps" : "parent"));
    TRY(node.function, number_of(attribute(json, "rf_id", chakra), "rf_id"));
    TRY(node.thread, number_of(attribute(json, "tid", chakra), "tid"));
    if (const Json* schema = attribute(json, "op_schema", chakra); schema != nullptr && schema->is_string())
      node.schema = schema->get<std::string>();
    TRY_VOID(read_side(json, "input", chakra, node.inputs));
    TRY_VOID(read_side(json, "output", chakra, node.outputs));
    nodes_.push_back(std::move(node));
    if (++size_ > kMostImported) return wrong("it has more nodes and tensors than we read; record one iteration");
    return {};
  }

  static const Json* attribute(const Json& node, const char* key, bool chakra) {
    if (!chakra) return member(node, key);
    for (const Json& one : node["attrs"])
      if (one.is_object() && one.value("name", Json()) == key) return member(one, "value");
    return nullptr;
  }

  Result<> read_side(const Json& node, const std::string& side, bool chakra, std::vector<EtTensor>& tensors) {
    const Json* all = member(node, (side + "s").c_str());
    const Json *values = all, *sizes = nullptr, *strides = nullptr;
    if (chakra) {
      if (all == nullptr || !all->is_object()) return wrong(fmt::format("'{}s' is missing or no object", side));
      values = member(*all, "values");
      sizes = member(*all, "shapes");
      strides = member(*all, "strides");
    } else {
      sizes = member(node, (side + "_shapes").c_str());
      strides = member(node, (side + "_strides").c_str());
    }
    if (values == nullptr || !values->is_array()) return wrong(fmt::format("the {}s are missing or no list", side));
    for (std::size_t argument = 0; argument < values->size(); ++argument)
      TRY_VOID(read_value((*values)[argument], spillway::at(sizes, argument), spillway::at(strides, argument), argument,
                          tensors));
    return {};
  }

  // A tensor, a list of values, or something else.
  Result<> read_value(const Json& value, const Json* sizes, const Json* strides, std::size_t argument,
                      std::vector<EtTensor>& tensors) {
    if (!value.is_array()) return {};
    const bool tensor = value.size() == kTensorFields && value.back().is_string() && value[0].is_number_unsigned();
    if (tensor) return read_tensor(value, sizes_of(sizes), sizes_of(strides), argument, tensors);
    for (std::size_t one = 0; one < value.size(); ++one)
      TRY_VOID(read_value(value[one], spillway::at(sizes, one), spillway::at(strides, one), argument, tensors));
    return {};
  }

  Result<> read_tensor(const Json& value, Sizes sizes, const Sizes& strides, std::size_t argument,
                       std::vector<EtTensor>& tensors) {
    std::uint64_t numbers[kTensorFields - 1];
    for (std::size_t n = 0; n + 1 < kTensorFields; ++n) {
      TRY(numbers[n], number_of(&value[n], "a tensor's number"));
    }
    const auto [id, storage, offset, elements, element] = numbers;
    if (storage == 0 || elements == 0) return {};
    const auto bytes = (static_cast<unsigned __int128>(offset) + extent_of(elements, sizes, strides)) * element;
    if (bytes == 0 || bytes > kMostEtBytes)
      return wrong(fmt::format("the tensor {} has no bytes, or more than 2^50", id));
    if (++size_ > kMostImported) return wrong("it has more nodes and tensors than we read; record one iteration");
    tensors.push_back({.storage = storage,
                       .bytes = {static_cast<std::uint64_t>(bytes)},
                       .device = value.back().get<std::string>(),
                       .argument = argument,
                       .sizes = std::move(sizes)});
    return {};
  }

  std::string where_;
  std::size_t at_ = 0, size_ = 0;
  std::vector<EtNode> nodes_;
};

}  // namespace

Result<std::vector<EtNode>> parse_execution_trace(std::string_view json, const std::string& where) {
  return EtReader(where).read(json);
}

std::vector<EtArgument> arguments_of(std::string_view schema) {
  std::vector<EtArgument> arguments;
  const std::size_t open = schema.find('(');
  if (open == std::string_view::npos) return arguments;
  int depth = 0;
  std::size_t begin = open + 1;
  for (std::size_t at = begin; at < schema.size(); ++at) {
    const char c = schema[at];
    const bool end = depth == 0 && (c == ',' || c == ')');
    if (end) {
      std::string_view one = schema.substr(begin, at - begin);
      begin = at + 1;
      while (one.starts_with(' ')) one.remove_prefix(1);
      const bool written = one.substr(0, one.find(' ')).contains('!');
      one = one.substr(0, one.find('='));
      if (!one.empty() && one != "*")
        arguments.push_back({.name = std::string(one.substr(one.rfind(' ') + 1)), .written = written});
      if (c == ')') break;
    }
    if (c == '(' || c == '[') ++depth;
    if (!end && (c == ')' || c == ']')) --depth;
  }
  return arguments;
}

}  // namespace spillway
