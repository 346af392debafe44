#include "import/chakra_writer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "import/chakra.h"
#include "trace/random_trace.h"

namespace spillway {
namespace {

Result<Trace> there_and_back(const Trace& trace) {
  const auto files = to_chakra(trace);
  if (!files) return std::unexpected(files.error());
  const auto nodes = parse_execution_trace(files->execution_trace, "et");
  if (!nodes) return std::unexpected(nodes.error());
  const auto kineto = parse_kineto(files->profile, "profile");
  if (!kineto) return std::unexpected(kineto.error());
  return join_chakra(*nodes, *kineto, "et", trace.name);
}

// What a kernel does, apart from the order in which it names tensors; each by the number that it had in the trace that
// was written.
using Ids = std::set<std::uint32_t>;
struct Uses {
  Ids reads = {}, writes = {}, frees = {};
  friend bool operator==(const Uses&, const Uses&) = default;
};

Uses uses_of(const Kernel& kernel, const auto& number) {
  Uses uses;
  for (const Access& read : kernel.reads) uses.reads.insert(number(read.tensor));
  for (const Access& write : kernel.writes) uses.writes.insert(number(write.tensor));
  for (const TensorId freed : kernel.frees) uses.frees.insert(number(freed));
  return uses;
}

// As an importer says the same: what a kernel fills itself it does not read, and every death is said.
std::vector<Uses> wanted(const Trace& trace) {
  std::vector<Uses> all;
  std::map<std::uint32_t, std::size_t> last;
  Ids freed, known;
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t)
    if (trace.tensors[t].persistent || trace.tensors[t].kind == TensorKind::input) known.insert(t);
  for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
    Uses uses = uses_of(trace.kernels[k], [](TensorId id) { return id.value; });
    std::erase_if(uses.reads, [&](std::uint32_t t) { return !known.contains(t); });
    for (const Ids* ids : {&uses.reads, &uses.writes})
      for (const std::uint32_t t : *ids) last[t] = k;
    known.insert(uses.writes.begin(), uses.writes.end());
    freed.insert(uses.frees.begin(), uses.frees.end());
    all.push_back(std::move(uses));
  }
  for (const auto& [t, k] : last)
    if (!freed.contains(t) && !trace.tensors[t].persistent) all[k].frees.insert(t);
  return all;
}

// As to_chakra() names their storages.
std::uint32_t number_of(const Tensor& tensor) {
  return static_cast<std::uint32_t>(std::stoul(tensor.name.substr(std::string("storage").size()))) - 1;
}

RC_GTEST_PROP(ChakraWriter, AnImportHasTheSameKernelsTensorsAndLifetimes, (std::uint32_t seed)) {
  const Trace trace = random_trace(seed, {.layers_most = 6, .carries = false});
  const auto back = there_and_back(trace);
  if (!back) RC_FAIL(back.error().message);
  RC_ASSERT(back->estimated == trace.estimated);
  RC_ASSERT(back->kernels.size() == trace.kernels.size());
  const std::vector<Uses> uses = wanted(trace);
  for (std::size_t k = 0; k < uses.size(); ++k) {
    const Kernel &is = back->kernels[k], &was = trace.kernels[k];
    RC_ASSERT(is.name == was.name && is.phase == was.phase && is.duration == was.duration && is.gap == was.gap);
    RC_ASSERT(uses_of(is, [&](TensorId id) { return number_of((*back)[id]); }) == uses[k]);
  }
  RC_ASSERT(back->tensors.size() == trace.tensors.size());
  for (const Tensor& is : back->tensors) {
    const Tensor& was = trace.tensors[number_of(is)];
    RC_ASSERT(is.bytes == was.bytes && is.persistent == was.persistent && is.kind == was.kind);
  }
}

// Whatever a file cannot say is lost the first time: then nothing more is.
RC_GTEST_PROP(ChakraWriter, AnImportIsWrittenAsItIs, (std::uint32_t seed)) {
  const auto once = there_and_back(random_trace(seed, {.layers_most = 6}));
  if (!once) RC_FAIL(once.error().message);
  auto twice = there_and_back(*once);
  if (!twice) RC_FAIL(twice.error().message);
  for (std::size_t t = 0; t < std::min(once->tensors.size(), twice->tensors.size()); ++t)
    twice->tensors[t].name = once->tensors[t].name;
  RC_ASSERT(*twice == *once);
}

TEST(ChakraWriter, ShapesAreKeptWhereEachReadHasOne) {
  Trace trace{.name = "some", .source = "by hand"};
  trace.tensors = {{.name = "w", .bytes = Bytes{64}, .kind = TensorKind::weight, .persistent = true},
                   {.name = "x", .bytes = Bytes{32}, .kind = TensorKind::input},
                   {.name = "y", .bytes = Bytes{16}, .kind = TensorKind::activation}};
  const auto whole = [&](std::uint32_t t) { return Access{.tensor = {t}, .end = trace.tensors[t].bytes}; };
  trace.kernels = {{.name = "aten::mm (odd \"name\")",
                    .phase = Phase::forward,
                    .duration = Nanos{10},
                    .reads = {whole(0), whole(1)},
                    .writes = {whole(2)},
                    .shapes = {{4, 4}, {2, 4}}},
                   {.name = "b",
                    .phase = Phase::forward,
                    .duration = Nanos{10},
                    .reads = {whole(2)},
                    .writes = {whole(0)},
                    .shapes = {{1}, {2}}}};
  const auto back = there_and_back(trace);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->kernels[0].name, trace.kernels[0].name);
  EXPECT_EQ(back->kernels[0].shapes, (std::vector<Sizes>{{2, 4}, {4, 4}})) << "weights come last";
  EXPECT_TRUE(back->kernels[1].shapes.empty());
}

TEST(ChakraWriter, RefusesWhatTheFilesCannotHold) {
  Trace trace = random_trace(3);
  trace.kernels[0].name = "\xff";
  const auto name = to_chakra(trace);
  ASSERT_FALSE(name);
  EXPECT_TRUE(name.error().message.contains("not UTF-8")) << name.error().message;
  trace = random_trace(3);
  trace.tensors[1].bytes = Bytes{kMostEtBytes + 1};
  const auto large = to_chakra(trace);
  ASSERT_FALSE(large);
  EXPECT_TRUE(large.error().message.contains("tensor 1 has 1125899906842625 bytes, more than 2^50"))
      << large.error().message;
}

}  // namespace
}  // namespace spillway
