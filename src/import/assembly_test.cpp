#include "import/assembly.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

Assembly two_kernels() {
  Assembly assembly("some", "test");
  assembly.begin("first", Phase::forward, Nanos{5}, {});
  return assembly;
}

TEST(Assembly, FillsWhatWasMadeWithTheFirstKernelThatIsGivenIt) {
  Assembly assembly = two_kernels();
  const TensorId made = assembly.add("made", {8}, true);
  assembly.read(made);
  assembly.begin("second", Phase::forward, Nanos{5}, {});
  assembly.read(made);
  const auto trace = std::move(assembly).finish("x");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_TRUE(trace->kernels[0].reads.empty());
  EXPECT_EQ(trace->kernels[0].writes, (std::vector<Access>{{.tensor = {0}, .end = {8}}}));
  EXPECT_EQ(trace->kernels[1].reads.size(), 1u);
  EXPECT_EQ(trace->tensors[0].kind, TensorKind::activation);
}

TEST(Assembly, NamesATensorOnceAndInItsFullSize) {
  Assembly assembly = two_kernels();
  const TensorId tensor = assembly.add("input", {8});
  assembly.read(tensor);
  assembly.read(tensor);
  assembly.grow(tensor, {16});
  assembly.grow(tensor, {12});
  const auto trace = std::move(assembly).finish("x");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->kernels[0].reads, (std::vector<Access>{{.tensor = {0}, .end = {16}}}));
  EXPECT_EQ(trace->tensors[0].kind, TensorKind::input);
}

TEST(Assembly, LeavesOutWhatNoKernelUses) {
  Assembly assembly = two_kernels();
  const TensorId unused = assembly.add("unused", {8});
  const TensorId used = assembly.add("used", {8});
  assembly.release(unused);
  assembly.write(used);
  const auto trace = std::move(assembly).finish("x");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->tensors.size(), 1u);
  EXPECT_EQ(trace->tensors[0].name, "used");
  EXPECT_EQ(trace->kernels[0].frees, (std::vector<TensorId>{{0}}));
}

TEST(Assembly, NeverFreesBeforeTheLastUse) {
  Assembly assembly = two_kernels();
  const TensorId tensor = assembly.add("early", {8});
  assembly.write(tensor);
  assembly.release(tensor);
  assembly.begin("second", Phase::other, Nanos{5}, {});
  assembly.read(tensor);
  const auto trace = std::move(assembly).finish("x");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_TRUE(trace->kernels[0].frees.empty());
  EXPECT_EQ(trace->kernels[1].frees, (std::vector<TensorId>{{0}}));
}

}  // namespace
}  // namespace spillway
