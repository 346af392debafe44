#include "latency/model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/files.h"
#include "base/text.h"
#include "base/version.h"

namespace spillway {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "spillway-latencies";
constexpr std::uint64_t kVersionOfFormat = 1;
constexpr Bytes kMostBytes = 256_MiB;  // ten thousand classes
constexpr int kDeepest = 6;
constexpr double kMostNumber = 1e9;  // more than any that training ends with
constexpr std::string_view kNameAnother = "name a file that `spillway fit-latencies` has made";
constexpr std::string_view kMakeAgain = "make the file again with `spillway fit-latencies`";

class Reader {
 public:
  explicit Reader(const std::string& where) : where_(where) {}

  Result<LatencyModel> read(const Json& root) const {
    if (!root.is_object()) return wrong("", "it is no JSON object", kNameAnother);
    const auto format = root.find("format");
    if (format == root.end() || *format != kFormat)
      return wrong("", fmt::format("its 'format' is not '{}'", kFormat), kNameAnother);
    const auto version = root.find("version");
    if (version == root.end() || *version != kVersionOfFormat)
      return wrong("", fmt::format("its 'version' is not {}, the one that this program reads", kVersionOfFormat));
    TRY_VOID(has_only(root, {"format", "version", "spillway", "features", "classes"}, ""));
    const auto features = root.find("features");
    if (features == root.end() || *features != Json(kFeatureNames))
      return wrong("", fmt::format("its 'features' are not those that this program predicts from, {}",
                                   fmt::join(kFeatureNames, ", ")));
    const auto classes = root.find("classes");
    if (classes == root.end() || !classes->is_array()) return wrong("", "'classes' is no list");
    LatencyModel model;
    for (const Json& one : *classes) {
      TRY(ClassLatency latency, read_class(one, fmt::format("classes[{}]", model.classes.size())));
      model.classes.push_back(std::move(latency));
    }
    std::ranges::sort(model.classes, {}, &ClassLatency::name);
    const auto twice = std::ranges::adjacent_find(model.classes, {}, &ClassLatency::name);
    if (twice != model.classes.end()) return wrong("", fmt::format("the class '{}' is there twice", twice->name));
    if (!std::ranges::binary_search(model.classes, kAnyClass, {}, &ClassLatency::name))
      return wrong("", fmt::format("it lacks the class '{}', for kernels of all others", kAnyClass));
    return model;
  }

 private:
  std::unexpected<Error> wrong(std::string_view place, std::string_view why,
                               std::string_view what_to_do = kMakeAgain) const {
    return fail(Errc::bad_input, fmt::format("cannot read latencies {}: {}{}{}; {}", where_, place,
                                             place.empty() ? "" : ": ", why, what_to_do));
  }

  Result<> has_only(const Json& object, std::initializer_list<std::string_view> keys, std::string_view place) const {
    for (const auto& [key, value] : object.items())
      if (std::ranges::find(keys, key) == keys.end())
        return wrong(place, fmt::format("unknown key '{}'; the keys here are {}", key, fmt::join(keys, ", ")));
    return {};
  }

  Result<ClassLatency> read_class(const Json& object, const std::string& place) const {
    if (!object.is_object()) return wrong(place, "it is no object");
    TRY_VOID(has_only(object, {"class", "kernels", "inputs", "output", "layers"}, place));
    const auto name = object.find("class"), kernels = object.find("kernels");
    if (name == object.end() || !name->is_string()) return wrong(place, "'class' is no text");
    if (kernels == object.end() || !kernels->is_number_unsigned())
      return wrong(place, "'kernels' is no whole number of at least 0");
    ClassLatency latency{.name = name->get<std::string>(), .kernels = kernels->get<std::uint64_t>(), .network = {}};
    const auto inputs = object.find("inputs"), layers = object.find("layers");
    if (inputs == object.end() || !inputs->is_array() || inputs->size() != latency.network.inputs.size())
      return wrong(place, fmt::format("'inputs' is no list of {}", latency.network.inputs.size()));
    for (std::size_t at = 0; at < inputs->size(); ++at)
      TRY_VOID(read_scale((*inputs)[at], latency.network.inputs[at], fmt::format("{}: inputs[{}]", place, at)));
    const auto output = object.find("output");
    if (output == object.end()) return wrong(place, "'output' is missing");
    TRY_VOID(read_scale(*output, latency.network.output, place + ": output"));
    if (layers == object.end() || !layers->is_array() || layers->size() != kLayers)
      return wrong(place, fmt::format("'layers' is no list of {}", kLayers));
    for (std::size_t at = 0; at < kLayers; ++at)
      TRY_VOID(read_layer((*layers)[at], at, latency.network.layers[at], fmt::format("{}: layers[{}]", place, at)));
    return latency;
  }

  Result<> read_scale(const Json& object, Scale& scale, const std::string& place) const {
    std::vector<float> numbers;
    TRY_VOID(read_numbers(object, 2, numbers, place));
    if (numbers[1] < 0) return wrong(place, "its spread, the second number, is below 0");
    scale = {.mean = numbers[0], .spread = numbers[1]};
    return {};
  }

  Result<> read_layer(const Json& object, std::size_t at, Layer& layer, const std::string& place) const {
    if (!object.is_object()) return wrong(place, "it is no object");
    TRY_VOID(has_only(object, {"weights", "biases"}, place));
    const auto weights = object.find("weights"), biases = object.find("biases");
    if (weights == object.end() || biases == object.end()) return wrong(place, "'weights' or 'biases' is missing");
    TRY_VOID(read_numbers(*weights, kWidths[at] * kWidths[at + 1], layer.weights, place + ": weights"));
    return read_numbers(*biases, kWidths[at + 1], layer.biases, place + ": biases");
  }

  Result<> read_numbers(const Json& list, std::size_t count, std::vector<float>& numbers,
                        const std::string& place) const {
    if (!list.is_array() || list.size() != count)
      return wrong(place, fmt::format("it is no list of {} numbers", count));
    numbers.reserve(count);
    for (const Json& one : list) {
      const double value = one.is_number() ? one.get<double>() : HUGE_VAL;
      if (!(std::abs(value) <= kMostNumber))
        return wrong(place, fmt::format("[{}] is no number of at most {}", numbers.size(), kMostNumber));
      numbers.push_back(static_cast<float>(value));
    }
    return {};
  }

  const std::string& where_;
};

std::string text_of(const Scale& scale) {
  CHECK(std::isfinite(scale.mean) && std::isfinite(scale.spread));
  return fmt::format("[{}, {}]", scale.mean, scale.spread);
}

std::string text_of(const std::vector<float>& numbers) {
  CHECK(std::ranges::all_of(numbers, [](float one) { return std::isfinite(one); }));
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

std::string text_of(const ClassLatency& latency) {
  std::string inputs, layers;
  for (const Scale& scale : latency.network.inputs) inputs += (inputs.empty() ? "" : ", ") + text_of(scale);
  for (const Layer& layer : latency.network.layers)
    layers += fmt::format("{}{{\"weights\": {}, \"biases\": {}}}", layers.empty() ? "" : ", ", text_of(layer.weights),
                          text_of(layer.biases));
  return fmt::format("{{\"class\": {}, \"kernels\": {}, \"inputs\": [{}], \"output\": {}, \"layers\": [{}]}}",
                     Json(latency.name).dump(-1, ' ', false, Json::error_handler_t::replace), latency.kernels, inputs,
                     text_of(latency.network.output), layers);
}

}  // namespace

Result<LatencyModel> parse_latencies(std::string_view json, const std::string& where) {
  if (nests_deeper(json, kDeepest))
    return fail(Errc::bad_input,
                fmt::format("cannot read latencies {}: it nests deeper than any; {}", where, kNameAnother));
  try {
    return Reader(where).read(Json::parse(json));
  } catch (const nlohmann::json::exception& error) {
    return fail(Errc::bad_input, fmt::format("cannot read latencies {}: it is not JSON: {}; if it was cut off, copy it "
                                             "or make it again with `spillway fit-latencies`",
                                             where, json_reason(error.what())));
  }
}

Result<LatencyModel> load_latencies(const std::string& path) {
  TRY(const std::string text, read_file(path, kMostBytes));
  return parse_latencies(text, path);
}

std::string to_json(const LatencyModel& model) {
  std::string text =
      fmt::format("{{\n\"format\": \"{}\", \"version\": {}, \"spillway\": \"{}\",\n\"features\": {},\n\"classes\": [\n",
                  kFormat, kVersionOfFormat, kVersion, Json(kFeatureNames).dump());
  for (const ClassLatency& one : model.classes) text += (&one == model.classes.data() ? "" : ",\n") + text_of(one);
  return text + "\n]}\n";
}

Result<> save_latencies(const std::string& path, const LatencyModel& model) {
  const std::string text = to_json(model);
  if (text.size() <= kMostBytes.value) return write_file(path, text);
  return fail(Errc::bad_input, fmt::format("cannot write {}: its {} classes take more than {}, the most that is read; "
                                           "fit fewer traces at a time",
                                           path, model.classes.size(), to_text(kMostBytes)));
}

}  // namespace spillway
