#pragma once

#include <concepts>
#include <type_traits>

#include "journal/coder.h"
#include "journal/record.h"

// The order of fields in a journal: docs/formats/journal.md. See Note [Fields] in coder.h.
namespace spillway {

template <class T, class... Known>
concept IsOneOf = (std::same_as<std::remove_const_t<T>, Known> || ...);

// Those that are written whole, in the order of their fields, by how many they have.
void fields(auto&, IsOneOf<ScriptEnded> auto&) {}
void fields(auto& code, IsOneOf<KernelQueued, KernelDone, Adopted, MoveDone, Launch, Populate, Cancel, Split, Join,
                                Park, Touched, Elapsed, Stopped> auto& one) {
  auto& [a] = one;
  code(a);
}
void fields(auto& code, IsOneOf<BlockRange, LaunchId, Freed, MoveFailed, Discard, Timer, Failure, Foresight::Row, Asked,
                                Named, IterationEnded> auto& one) {
  auto& [a, b] = one;
  code(a, b);
}
void fields(auto& code, IsOneOf<BlockRun, ExecutorOptions, Told> auto& one) {
  auto& [a, b, c] = one;
  code(a, b, c);
}
void fields(auto& code, IsOneOf<BlockAccess> auto& one) {
  auto& [a, b, c, d] = one;
  code(a, b, c, d);
}
void fields(auto& code, IsOneOf<KernelReady, FollowedPlan, Beginning> auto& one) {
  auto& [a, b, c, d, e, f] = one;
  code(a, b, c, d, e, f);
}
void fields(auto& code, IsOneOf<Move> auto& one) {
  auto& [a, b, c, d, e, f, g] = one;
  code(a, b, c, d, e, f, g);
}

// ---- The others
void fields(auto& code, IsOneOf<Allocated> auto& event) {
  auto& [tensor, blocks, label, keeps_bytes] = event;  // No run tells that it keeps bytes.
  code(tensor, blocks, label);
}
void fields(auto& code, IsOneOf<Faulted> auto& event) {
  auto& [stream, blocks, anew, touched_next] = event;  // No run tells what is touched next.
  code(stream, blocks, anew);
}
void fields(auto& code, IsOneOf<MigrationOptions> auto& options) {
  auto& [a, b, c, d, e, f, g, whole_tensors_of] = options;  // No run moves whole tensors.
  code(a, b, c, d, e, f, g);
}
// No run follows a plan whose commands have delays, or that kernels wait for.
void fields(auto& code, IsOneOf<Eviction> auto& eviction) {
  auto& [tensor, after, to, delay, during, awaited_by] = eviction;
  code(tensor, after, to);
}
void fields(auto& code, IsOneOf<Prefetch> auto& prefetch) {
  auto& [tensor, at, keeps_copy, delay, awaited_by] = prefetch;
  code(tensor, at, keeps_copy);
}
// The executor looks at the commands alone; the policy is for people.
void fields(auto& code, IsOneOf<Plan> auto& plan) {
  auto& [policy, trace_name, trace_hash, trace_shape, machine_name, machine_hash, overrides, evictions, prefetches,
         recomputations, over, shortfall, seconds, reckoned] = plan;
  code(policy, evictions, prefetches);
}

}  // namespace spillway
