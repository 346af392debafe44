#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "base/files.h"
#include "trace/format.h"
#include "trace/random_trace.h"

namespace spillway {
namespace {

const std::string kGood =
    R"({"format":"spillway-trace","version":1,"name":"n","source":"s",
"tensors":[{"id":0,"name":"w","bytes":100,"kind":"weight","persistent":true},
{"id":1,"name":"a","bytes":50,"kind":"activation","persistent":false}],
"kernels":[{"name":"f","phase":"forward","duration_ns":10,"gap_ns":2,"reads":[0],"writes":[1],"frees":[],"flops":1.5},
{"name":"b","phase":"backward","duration_ns":20,"gap_ns":0,"reads":[{"tensor":1,"begin":10,"end":20},0],
"writes":[{"tensor":0,"sparse":true}],"frees":[1]}]})";

// kGood with `from`, which must be there, replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// The whole error, or "" if there is none.
std::string error_of(const std::string& json) {
  const auto trace = parse_trace(json, "some/file.trace");
  return trace ? "" : trace.error().message;
}

void expect_error(const std::string& json, const std::vector<std::string>& parts) {
  const std::string error = error_of(json);
  ASSERT_NE(error, "") << json.substr(0, 300);
  EXPECT_TRUE(error.contains("some/file.trace")) << error;
  for (const std::string& part : parts) EXPECT_TRUE(error.contains(part)) << "no '" << part << "' in: " << error;
}

TEST(TraceParser, EveryFieldArrivesWhereItBelongs) {
  const auto loaded = parse_trace(kGood, "x");
  ASSERT_TRUE(loaded) << loaded.error().message;
  const Trace& t = loaded->trace;
  EXPECT_EQ(t.name, "n");
  EXPECT_EQ(t.source, "s");
  ASSERT_EQ(t.tensors.size(), 2u);
  EXPECT_EQ(t.tensors[0], (Tensor{"w", {100}, TensorKind::weight, true, {}}));
  ASSERT_EQ(t.kernels.size(), 2u);
  EXPECT_EQ(t.kernels[0], (Kernel{"f", Phase::forward, {10}, {2}, {{{0}, {0}, {100}}}, {{{1}, {0}, {50}}}, {}, 1.5}));
  EXPECT_EQ(t.kernels[1], (Kernel{"b",
                                  Phase::backward,
                                  {20},
                                  {0},
                                  {{{1}, {10}, {20}}, {{0}, {0}, {100}}},
                                  {{{0}, {0}, {100}, true}},
                                  {{1}},
                                  {}}));
}

TEST(TraceParser, TheOrderOfKeysDoesNotMatter) {
  const std::string turned =
      R"({"kernels":[{"reads":[0],"writes":[],"duration_ns":1,"phase":"other","name":"k"}],"tensors":
[{"persistent":true,"kind":"other","bytes":9,"name":"t","id":0}],"source":"","name":"","version":1,"format":"spillway-trace"})";
  const auto loaded = parse_trace(turned, "x");
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->trace.kernels[0].reads[0].end, Bytes{9});
}

TEST(TraceParser, WhatIsNotJsonIsPlacedByByteAndLine) {
  expect_error("", {"empty"});
  expect_error(kGood.substr(0, kGood.size() / 2), {"byte", "line", "cut off"});
  expect_error("\xff\xfe{}", {"byte 1", "UTF-8"});
  expect_error(changed("\"n\"", "\"\xc3\x28\""), {"byte", "UTF-8"});
  expect_error(kGood + "x", {"byte"});
  expect_error(changed("\"duration_ns\":10", "\"duration_ns\":1e999"), {"byte", "1e999"});
  expect_error(changed("\"duration_ns\":10", "\"duration_ns\":NaN"), {"byte"});
}

TEST(TraceParser, DeepNestingIsOneError) {
  expect_error(std::string(200'000, '['), {"not a trace"});
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += R"({"a":)";
  expect_error(objects, {"format"});
  expect_error(changed("\"reads\":[0]", "\"reads\":" + std::string(200'000, '[')), {"kernel 0", "reads"});
}

TEST(TraceParser, AnotherKindOfFileAndAnotherVersionAreNamedAsSuch) {
  expect_error(R"({"a":1})", {"not a trace", "'format' is missing"});
  expect_error("[]", {"not a trace"});
  expect_error("3", {"not a trace"});
  expect_error(changed("spillway-trace", "spillway-plan"), {"not a trace", "'spillway-plan'"});
  expect_error(changed("\"version\":1", "\"version\":4"), {"version is 4", "reads versions 1 to 3"});
  expect_error(changed("\"version\":1", "\"version\":0"), {"version is 0", "reads versions 1 to 3"});
  expect_error(changed("\"version\":1", "\"version\":-1"), {"version is -1"});
  expect_error(changed("\"version\":1", "\"version\":\"1\""), {"version"});
  // A later version may have keys that this one does not know, even before it says which it is.
  expect_error(R"({"format":"spillway-trace","streams":[{"id":0}],"version":7})", {"version is 7"});
}

TEST(TraceParser, EstimatedTimesAreOfVersion3) {
  std::string text = changed("\"source\":\"s\"", R"("source":"s","estimated":"roofline, a100")");
  expect_error(text, {"version 1 has no key 'estimated'", "write version 3"});
  text.replace(text.find("\"version\":1"), 11, "\"version\":3");
  const auto loaded = parse_trace(text, "memory");
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->trace.estimated, "roofline, a100");
  expect_error(text.replace(text.find("roofline, a100"), 14, ""), {"estimated is empty"});
}

TEST(TraceParser, UnknownMissingAndRepeatedKeysAreRefused) {
  expect_error(changed("\"gap_ns\":2", "\"gaps_ns\":2"), {"kernel 0 ('f')", "'gaps_ns'", "gap_ns"});
  expect_error(changed("\"bytes\":100,", ""), {"tensor 0 ('w')", "'bytes' is missing"});
  expect_error(changed("\"phase\":\"forward\",", ""), {"kernel 0", "'phase' is missing"});
  expect_error(changed("\"source\":\"s\",", ""), {"'source' is missing"});
  expect_error(changed("\"bytes\":100", "\"bytes\":100,\"bytes\":200"), {"tensor 0", "'bytes' is there twice"});
  expect_error(changed("{\"tensor\":0,\"sparse\":true}", "{\"sparse\":true}"), {"kernel 1", "'tensor' is missing"});
}

TEST(TraceParser, ValuesOfTheWrongKindAreRefusedWithWhatWouldBeRight) {
  expect_error(changed("\"bytes\":100", "\"bytes\":-5"), {"tensor 0 ('w')", "bytes is -5", "whole number"});
  expect_error(changed("\"bytes\":100", "\"bytes\":99999999999999999999"),
               {"tensor 0", "99999999999999999999", "2^63"});
  expect_error(changed("\"bytes\":100", "\"bytes\":1.5"), {"tensor 0", "1.5"});
  expect_error(changed("\"bytes\":100", "\"bytes\":\"100\""), {"tensor 0", "whole number"});
  expect_error(changed("\"bytes\":100", "\"bytes\":null"), {"tensor 0", "null"});
  expect_error(changed("\"bytes\":100", "\"bytes\":[1]"), {"tensor 0", "an array"});
  expect_error(changed("\"bytes\":100", "\"bytes\":{\"a\":1}"), {"tensor 0", "an object"});
  expect_error(changed("\"duration_ns\":10", "\"duration_ns\":-1"), {"kernel 0 ('f')", "duration_ns is -1"});
  expect_error(changed("\"kind\":\"weight\"", "\"kind\":\"heavy\""), {"tensor 0", "kind is heavy", "optimizer_state"});
  expect_error(changed("\"phase\":\"forward\"", "\"phase\":\"up\""), {"kernel 0", "phase is up", "backward"});
  expect_error(changed("\"persistent\":true", "\"persistent\":1"), {"tensor 0", "true or false"});
  expect_error(changed("\"flops\":1.5", "\"flops\":-1.5"), {"kernel 0", "flops"});
  expect_error(changed("\"reads\":[0]", "\"reads\":0"), {"kernel 0", "reads is 0"});
  expect_error(changed("\"reads\":[0]", "\"reads\":[\"w\"]"), {"kernel 0", "reads is w"});
  expect_error(changed("\"reads\":[0]", "\"reads\":[-1]"), {"kernel 0", "reads is -1"});
  expect_error(changed("\"reads\":[0]", "\"reads\":[4294967296]"), {"kernel 0", "4294967296"});
  expect_error(changed("\"frees\":[1]", "\"frees\":[true]"), {"kernel 1 ('b')", "frees is true"});
  expect_error(changed("\"tensors\":[", "\"tensors\":[0,"), {"'tensors' holds 0"});
  expect_error(changed("\"end\":20", "\"end\":18446744073709551615"), {"kernel 1", "end"});
}

// kGood as version 2, with these keys more in its first kernel.
std::string with_keys(const std::string& keys) {
  std::string text = changed("\"flops\":1.5", keys);
  return text.replace(text.find("\"version\":1"), 11, "\"version\":2");
}

TEST(TraceParser, KernelsOfVersion2MaySayHowTheyAreReplayedAndWhatShapesTheyAreGiven) {
  const auto loaded = parse_trace(with_keys(R"("shapes":[[2,3],[],[0]],"replay":{"omits":[1]})"), "x");
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->trace.kernels[0].replay, (Replayable{{{1}}}));
  EXPECT_EQ(loaded->trace.kernels[0].shapes, (std::vector<Sizes>{{2, 3}, {}, {0}}));
  EXPECT_EQ(loaded->trace.kernels[1].replay, std::nullopt);
  EXPECT_TRUE(loaded->trace.kernels[1].shapes.empty());
  EXPECT_EQ(error_of(with_keys(R"("replay":{"omits":[]})")), "");
}

TEST(TraceParser, KeysOfVersion2AreRefusedInVersion1) {
  expect_error(changed("\"flops\":1.5", R"("replay":{"omits":[]})"), {"version 1 has no key '", "write version 2"});
  expect_error(changed("\"flops\":1.5", R"("shapes":[])"), {"version 1 has no key 'shapes'", "write version 2"});
  // Also where the version comes last.
  std::string last = changed("\"version\":1,", "");
  last = last.replace(last.find("\"flops\":1.5"), 11, "\"shapes\":[]");
  expect_error(last.insert(last.size() - 1, ",\"version\":1"), {"version 1 has no key 'shapes'"});
}

TEST(TraceParser, ReplaysAndShapesOfTheWrongKindAreRefused) {
  expect_error(with_keys("\"replay\":true"), {"kernel 0 ('f')", "replay is true", "an object with omits"});
  expect_error(with_keys("\"replay\":[]"), {"replay is an array"});
  expect_error(with_keys("\"replay\":{}"), {"kernel 0", "'omits' is missing"});
  expect_error(with_keys(R"("replay":{"omits":1})"), {"omits is 1"});
  expect_error(with_keys(R"("replay":{"omits":[-1]})"), {"omits is -1", "tensor ids"});
  expect_error(with_keys(R"("replay":{"omits":[[1]]})"), {"omits is an array"});
  expect_error(with_keys(R"("replay":{"omits":[],"omit":[]})"), {"unknown key 'omit'", "omits"});
  expect_error(with_keys("\"shapes\":3"), {"shapes is 3"});
  expect_error(with_keys("\"shapes\":[3]"), {"shapes is 3", "list of lists"});
  expect_error(with_keys("\"shapes\":[[-1]]"), {"shapes is -1"});
  expect_error(with_keys("\"shapes\":[[[]]]"), {"shapes is an array"});
  expect_error(with_keys("\"shapes\":{}"), {"shapes is an object"});
}

TEST(TraceParser, IdsCountFromZeroInOrder) {
  expect_error(changed("\"id\":1", "\"id\":0"), {"tensor 1", "id is 0 but must be 1"});
  expect_error(changed("\"id\":1", "\"id\":2"), {"tensor 1", "id is 2 but must be 1"});
}

TEST(TraceParser, FlopsMayBeNullOrWhole) {
  EXPECT_EQ(error_of(changed("\"flops\":1.5", "\"flops\":null")), "");
  EXPECT_EQ(error_of(changed("\"flops\":1.5", "\"flops\":3")), "");
}

TEST(TraceParser, TheExampleInTheDocumentIsATrace) {
  const auto document = read_file("docs/formats/trace.md", 1_MiB);  // tests run in the project's root
  ASSERT_TRUE(document) << document.error().message;
  const std::size_t begin = document->find("```json\n") + 8;
  EXPECT_EQ(error_of(document->substr(begin, document->find("```", begin) - begin)), "");
}

// Cutting and flipping bytes gives an error or a trace, never anything else.
RC_GTEST_PROP(TraceParser, SurvivesDamage, (std::uint32_t seed, std::uint32_t at, std::uint8_t byte)) {
  auto json = to_json(random_trace(seed % 100, {.layers_most = 2}));
  RC_ASSERT(json.has_value());
  (*json)[at % json->size()] = static_cast<char>(byte);
  if (const auto trace = parse_trace(*json, "x"); !trace) RC_ASSERT(trace.error().message.size() > 20);
  RC_ASSERT(!parse_trace(json->substr(0, at % (json->size() - 2)), "x"));
}

}  // namespace
}  // namespace spillway
