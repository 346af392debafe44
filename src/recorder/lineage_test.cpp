#include "recorder/lineage.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

KernelLineage kernel(std::string_view name, std::initializer_list<Lineage> arguments) {
  KernelLineage result(name);
  for (const Lineage& argument : arguments) result.given(argument);
  return result;
}

// A tensor that a kernel makes, told apart from those alike.
Lineage made(Families& families, std::string_view name, std::initializer_list<Lineage> arguments = {}) {
  Lineage newborn = kernel(name, arguments).birth(0);
  families.join(newborn);
  return newborn;
}

TEST(Lineage, ThoseAlikeAreToldApartAndComeAgain) {
  Families families;
  const Lineage first = made(families, "empty");
  const Lineage second = made(families, "empty");
  EXPECT_NE(first.label, second.label);
  families.leave(first);
  EXPECT_EQ(made(families, "empty").label, first.label);
  EXPECT_NE(made(families, "empty").label, second.label);
}

TEST(Lineage, TheSameKernelWithOtherWeightsIsAnotherOne) {
  Families families;
  const Lineage w0 = made(families, "empty"), w1 = made(families, "empty"), x = made(families, "randn");
  EXPECT_NE(kernel("mm", {x, w0}).execution(), kernel("mm", {x, w1}).execution());
  EXPECT_NE(kernel("mm", {x, w0}).execution(), kernel("mm", {w0, x}).execution());
  EXPECT_NE(kernel("mm", {x, w0}).birth(0).generations, kernel("mm", {x, w1}).birth(0).generations);
  EXPECT_NE(kernel("mm", {x, w0}).birth(0).generations, kernel("mm", {x, w0}).birth(1).generations);
}

TEST(Lineage, AnIterationIsTheSameEveryTime) {
  Families families;
  const Lineage w0 = made(families, "empty"), w1 = made(families, "empty");
  const auto iteration = [&] {
    std::vector<ExecutionId> executions;
    const Lineage x = made(families, "randn");
    executions.push_back(kernel("mm", {x, w0}).execution());
    const Lineage h = made(families, "mm", {x, w0});
    executions.push_back(kernel("mm", {h, w1}).execution());
    const Lineage y = made(families, "mm", {h, w1});
    for (const Lineage& dead : {x, h, y}) families.leave(dead);
    return executions;
  };
  const auto first = iteration();
  EXPECT_NE(first[0], first[1]);
  EXPECT_EQ(iteration(), first);
}

TEST(Lineage, WhatIsCarriedOnForEverIsTheSameAfterAFewIterations) {
  Families families;
  Lineage average = made(families, "zeros");
  std::vector<TensorLabel> labels;
  std::vector<ExecutionId> executions;
  for (int step = 0; step < 9; ++step) {
    executions.push_back(kernel("lerp", {average}).execution());
    const Lineage next = made(families, "lerp", {average});
    families.leave(average);
    average = next;
    labels.push_back(average.label);
  }
  EXPECT_EQ(executions[4], executions[5]);
  EXPECT_EQ(labels[5], labels[7]);  // It and its successor take turns.
}

}  // namespace
}  // namespace spillway
