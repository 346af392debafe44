#pragma once

#include <string_view>
#include <utility>

#include "executor/attention.h"
#include "executor/followed_plan.h"

namespace spillway {

// A plan as a run follows it.
struct RunPlan {
  explicit RunPlan(FollowedPlan plan = {}) : followed(std::move(plan)), attention(followed) {}

  FollowedPlan followed;
  Attention attention;
};

// What is known of a kernel that is about to start.
struct NextKernel {
  const RunPlan* plan = nullptr;  // in whose iteration it has this place; valid until the kernel has ended
  KernelId kernel = kNoKernel;
  ExecutionId execution{};
  std::string_view name{};  // of its operator; stays until the kernel has ended
};

}  // namespace spillway
