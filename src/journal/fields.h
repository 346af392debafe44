#pragma once

#include <concepts>
#include <type_traits>

#include "journal/coder.h"
#include "journal/record.h"

// The order of fields in a journal: docs/formats/journal.md. See Note [Fields] in coder.h.
namespace spillway {

template <class T, class Known>
concept Is = std::same_as<std::remove_const_t<T>, Known>;

void fields(auto& code, Is<BlockRange> auto& blocks) {
  auto& [first, count] = blocks;
  code(first, count);
}
void fields(auto& code, Is<BlockAccess> auto& access) {
  auto& [blocks, tensor, writes, sparse] = access;
  code(blocks, tensor, writes, sparse);
}

// ---- Events
void fields(auto& code, Is<Allocated> auto& event) {
  auto& [tensor, blocks, label, keeps_bytes] = event;  // No run tells that it keeps bytes.
  code(tensor, blocks, label);
}
void fields(auto& code, Is<Freed> auto& event) {
  auto& [tensor, blocks] = event;
  code(tensor, blocks);
}
void fields(auto& code, Is<LaunchId> auto& launch) {
  auto& [stream, serial] = launch;
  code(stream, serial);
}
void fields(auto& code, Is<KernelReady> auto& event) {
  auto& [launch, kernel, accesses, execution, waits, plan] = event;
  code(launch, kernel, accesses, execution, waits, plan);
}
void fields(auto& code, Is<KernelQueued> auto& event) {
  auto& [launch] = event;
  code(launch);
}
void fields(auto& code, Is<KernelDone> auto& event) {
  auto& [launch] = event;
  code(launch);
}
void fields(auto& code, Is<Adopted> auto& event) {
  auto& [plan] = event;
  code(plan);
}
void fields(auto& code, Is<Faulted> auto& event) {
  auto& [stream, blocks] = event;
  code(stream, blocks);
}
void fields(auto& code, Is<MoveDone> auto& event) {
  auto& [move] = event;
  code(move);
}
void fields(auto& code, Is<MoveFailed> auto& event) {
  auto& [move, cancelled] = event;
  code(move, cancelled);
}

// ---- Commands
void fields(auto& code, Is<Launch> auto& command) {
  auto& [launch] = command;
  code(launch);
}
void fields(auto& code, Is<Move> auto& command) {
  auto& [id, blocks, from, to, urgency, first_piece, clean] = command;
  code(id, blocks, from, to, urgency, first_piece, clean);
}
void fields(auto& code, Is<Populate> auto& command) {
  auto& [blocks] = command;
  code(blocks);
}
void fields(auto& code, Is<Discard> auto& command) {
  auto& [blocks, tier] = command;
  code(blocks, tier);
}
void fields(auto& code, Is<Cancel> auto& command) {
  auto& [move] = command;
  code(move);
}
void fields(auto& code, Is<Failure> auto& failure) {
  auto& [kind, bytes] = failure;
  code(kind, bytes);
}

// ---- Plans
void fields(auto& code, Is<Eviction> auto& eviction) {
  auto& [tensor, after, to] = eviction;
  code(tensor, after, to);
}
void fields(auto& code, Is<Prefetch> auto& prefetch) {
  auto& [tensor, at, keeps_copy] = prefetch;
  code(tensor, at, keeps_copy);
}
void fields(auto& code, Is<Foresight::Row> auto& row) {
  auto& [blocks, uses] = row;
  code(blocks, uses);
}
// The executor looks at the commands alone; the policy is for people.
void fields(auto& code, Is<Plan> auto& plan) {
  auto& [policy, trace_name, trace_hash, trace_shape, machine_name, machine_hash, overrides, evictions, prefetches,
         over, seconds] = plan;
  code(policy, evictions, prefetches);
}

void fields(auto& code, Is<FollowedPlan> auto& plan) {
  auto& [id, kernels, commands, homes, rows, births] = plan;
  code(id, kernels, commands, homes, rows, births);
}

// ---- Records
void fields(auto& code, Is<BlockRun> auto& run) {
  auto& [count, bytes, placed] = run;
  code(count, bytes, placed);
}
void fields(auto& code, Is<MigrationOptions> auto& options) {
  auto& [victims_to_host, keeps_copies, keep_dead_blocks, piece_blocks, planned_in_flight] = options;
  code(victims_to_host, keeps_copies, keep_dead_blocks, piece_blocks, planned_in_flight);
}
void fields(auto& code, Is<ExecutorOptions> auto& options) {
  auto& [kernels_fault, window_blocks, migration] = options;
  code(kernels_fault, window_blocks, migration);
}
void fields(auto& code, Is<Beginning> auto& beginning) {
  auto& [version, capacity, blocks, options, online, online_device] = beginning;
  code(version, capacity, blocks, options, online, online_device);
}
void fields(auto& code, Is<Told> auto& told) {
  auto& [since_last, iterations, event] = told;
  code(since_last, iterations, event);
}
void fields(auto& code, Is<Asked> auto& asked) {
  auto& [commands, failure] = asked;
  code(commands, failure);
}
void fields(auto& code, Is<Stopped> auto& stopped) {
  auto& [reason] = stopped;
  code(reason);
}
void fields(auto&, Is<ScriptEnded> auto&) {}

}  // namespace spillway
